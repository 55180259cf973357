"""Every command of the README runs: with a loopback model, without a model hub."""

import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Any

import pytest

from meta_agent_rag.testing.server import helpful, loopback_server
from tests.files import pdf
from tests.house.test_documents import ROOT, shell_lines
from tests.integration.test_runner import environment

LINES = [line for line in shell_lines((ROOT / "README.md").read_text(encoding="utf-8")) if line.startswith("uv run ")]
OF_THE_HUB = ("models get", "--dataset hotpotqa")
STAYS = ("marag demo",)
"""Commands that run until they are stopped."""


def command(line: str) -> list[str]:
    """A line of the README for this environment, without its comment."""
    _, _, name, *words = shlex.split(line, comments=True)
    program = sys.executable if name == "python" else str(Path(sysconfig.get_path("scripts")) / name)
    return [program, *words]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with the files that the README mentions; its commands run in order."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    (folder / "notes").mkdir()
    (folder / "notes" / "mill.md").write_text("# The mill\n\nThe mill at Orrin was designed by Tessa Brannock.\n")
    (folder / "report.pdf").write_bytes(pdf([["The mill at Orrin was opened in 1911."]]))
    return folder


@pytest.fixture(scope="module")
def env(folder: Path) -> Iterator[dict[str, str]]:
    with loopback_server(helpful()) as server:
        yield environment(server.base_url, folder / "data") | {"HF_ENDPOINT": "http://127.0.0.1:9"}


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_the_command_runs(line: str, folder: Path, env: dict[str, str]) -> None:
    if any(words in line for words in STAYS):
        words = [*command(line), "--port", "0"]
        with subprocess.Popen(words, cwd=folder, env=env, stdout=PIPE, stderr=STDOUT, text=True) as running:
            assert running.stdout is not None
            assert any("http://127.0.0.1:" in said for said in running.stdout)
            running.terminate()
        return
    given: dict[str, Any] = {"cwd": folder, "env": env, "stdin": DEVNULL, "timeout": 300}
    done = subprocess.run(command(line), **given, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    if any(words in line for words in OF_THE_HUB):
        assert "hub" in done.stderr, "without a hub, one sentence says so"
    elif "doctor" not in line:  # it fails if something that is configured is not reachable
        assert done.returncode == 0, done.stderr
        assert done.stdout

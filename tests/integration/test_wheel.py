"""The built wheel without extras in a fresh environment: what the core can do, and which extras it names."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from meta_agent_rag.testing.server import loopback_server, quoting

ROOT = Path(__file__).parents[2]
UV = shutil.which("uv")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(UV is None, reason="uv is not on the PATH")]


def uv(*words: str) -> str:
    """Run uv offline from its cache, or online if the cache is incomplete."""
    assert UV is not None
    for offline in (["--offline"], []):
        done = subprocess.run([UV, *words, *offline], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout
    raise AssertionError(done.stderr)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executables of an environment with the wheel and its core requirements, in the locked versions."""
    folder = tmp_path_factory.mktemp("core")
    python = folder / "env" / "bin" / "python"
    uv("build", "--wheel", "--quiet", "--out-dir", str(folder))
    uv("venv", "--quiet", "--python", sys.executable, str(folder / "env"))
    pinned = uv("export", "--frozen", "--quiet", "--no-default-groups", "--no-emit-project", "--no-hashes")
    (folder / "pinned.txt").write_text(pinned)
    (wheel,) = folder.glob("*.whl")
    uv("pip", "install", "--quiet", "--no-deps", "--python", str(python), "-r", str(folder / "pinned.txt"), str(wheel))
    uv("pip", "check", "--python", str(python))
    return python.parent


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A model behind OpenAI's API, with this clone removed from the path."""
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setenv("FLASH_MODEL", "scripted")
    with loopback_server(quoting()) as running:
        monkeypatch.setenv("LLM_BASE_URL", running.base_url)
        yield


def marag(core: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(core / "marag"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ)


@pytest.mark.usefixtures("server")
def test_ask_answers_without_any_extra(core: Path) -> None:
    assert marag(core, "--help").returncode == 0
    done = marag(core, "ask", "Which river is crossed by the bridge that Ansel Torvaine designed?", "--json")
    assert done.returncode == 0, done.stderr
    assert '"short_answer"' in done.stdout
    assert "meta-agent-rag[encoders]" in done.stderr


@pytest.mark.usefixtures("server")
def test_the_benchmark_runs_from_the_wheel(core: Path, tmp_path: Path) -> None:
    run = marag(core, "bench", "runner", "--dataset", "sample", "--n", "3", "--method", "closed_book,metarag")
    assert run.returncode == 0, run.stderr
    (folder,) = (tmp_path / "RESULTS").iterdir()
    assert {"summary.json", "report.md", "samples.jsonl"} <= {file.name for file in folder.iterdir()}
    assert "meta-agent-rag[bench]" in (folder / "report.md").read_text(), "skipped plots name the extra they need"
    compared = marag(core, "bench", "compare", str(folder), "--method-a", "closed_book", "--method-b", "metarag")
    assert compared.returncode == 0, compared.stderr


@pytest.mark.usefixtures("server")
def test_the_recorded_sample_is_in_the_wheel(core: Path) -> None:
    (record,) = core.parent.glob("lib/python*/site-packages/meta_agent_rag/benchmarks/recorded/sample.jsonl.gz")
    done = marag(core, "bench", "runner", "--replay", str(record))
    assert done.returncode == 0, done.stderr


def test_in_a_clone_the_command_runs_the_tree_from_any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH")
    command = [sys.executable, "-m", "meta_agent_rag.cli.main", "bench", "compare", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--method-a" in done.stdout
    assert "bench compare [OPTIONS]" in " ".join(done.stdout.split())

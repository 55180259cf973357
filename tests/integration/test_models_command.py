"""`marag models`, against a loopback hub."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from meta_agent_rag.cli.main import app
from meta_agent_rag.llm import local
from meta_agent_rag.llm.local import LocalModel, local_models
from tests.hub import CHUNK, WEIGHTS, Hub, loopback_hub, model, point_at

pytest.importorskip("huggingface_hub")
HALF = len(WEIGHTS) // 2
OTHER = bytes(len(WEIGHTS))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with loopback_hub() as found:
        point_at(found.url, monkeypatch)
        list_of(monkeypatch, model())
        yield found


def list_of(monkeypatch: pytest.MonkeyPatch, *rows: LocalModel) -> None:
    monkeypatch.setattr(local, "local_models", lambda: {row.name: row for row in rows})


def marag(*words: str, **env: str) -> Result:
    return CliRunner().invoke(app, [*words], env=env)


def downloaded() -> Path:
    return Path("data/models/tiny.gguf")


def parts() -> list[Path]:
    return sorted(downloaded().parent.glob("*.part"))


def assert_rejected(result: Result, said: str, code: int = 2) -> None:
    """Check for one sentence on stderr and no downloaded file."""
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert not downloaded().exists()


def test_the_list_shows_size_licence_memory_and_the_choice_of_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "machine_memory", lambda: 7 * 10**9)
    rows = local_models()
    for name in ("qwen2.5-1.5b", "qwen2.5-7b"):
        file = Path("data/models", rows[name].file)
        file.parent.mkdir(exist_ok=True)
        file.touch()
    shown = marag("models").stdout
    lines = {line.split()[0]: line for line in shown.splitlines()}
    assert set(rows) < set(lines)
    assert lines["qwen2.5-1.5b"].split("  ")[-1] == "downloaded, chosen by auto"
    assert lines["qwen2.5-7b"].split("  ")[-1] == "downloaded, too large for this machine"
    assert lines["phi-4-mini"].endswith("MIT")
    assert "1.1 GB" in lines["qwen2.5-1.5b"]
    assert shown.endswith("`auto` chooses qwen2.5-1.5b.\n")
    reported = {row["name"]: row for row in json.loads(marag("models", "--json").stdout)}
    assert [name for name, row in reported.items() if row["downloaded"]] == ["qwen2.5-1.5b", "qwen2.5-7b"]
    assert [name for name, row in reported.items() if row["auto"]] == ["qwen2.5-1.5b"]
    assert reported["qwen2.5-1.5b"]["memory"] > reported["qwen2.5-1.5b"]["bytes"]


def test_get_downloads_the_pinned_revision_and_checks_it(hub: Hub) -> None:
    result = marag("models", "get", "Tiny", "--json", HF_TOKEN="hf-planted")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "name": "tiny",
        "path": str(downloaded().absolute()),
        "sha256": hub.sha256,
    }
    assert downloaded().read_bytes() == WEIGHTS
    assert {path for _, path, _ in hub.asked} == {f"/someone/tiny-GGUF/resolve/{'1f' * 20}/tiny.gguf"}
    assert {key for _, _, key in hub.asked} == {"Bearer hf-planted"}
    assert "hf-planted" not in result.output
    assert not parts()
    assert marag("models", "get", "tiny").exit_code == 0
    assert hub.downloads == 1
    assert "downloaded, chosen by auto" in marag("models").stdout


SCRIPT = """
import sys
from huggingface_hub import constants
from meta_agent_rag.llm.local import fetch
from meta_agent_rag.settings import Settings
from tests.hub import CHUNK, model
constants.DOWNLOAD_CHUNK_SIZE = CHUNK
fetch(model(), Settings.load())
"""


def test_a_killed_download_is_resumed(hub: Hub) -> None:
    hub.stops, hub.held = [HALF], threading.Event()
    env = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": ""}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], env=env) as killed:
        end = time.monotonic() + 60
        while not (parts() and parts()[0].stat().st_size >= HALF - CHUNK):
            assert time.monotonic() < end
            assert killed.poll() is None
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
    hub.held.set()
    (part,) = parts()
    there = part.stat().st_size
    assert part.read_bytes() == WEIGHTS[:there]
    assert not downloaded().exists()
    result = marag("models", "get", "tiny")
    assert result.exit_code == 0, result.output
    assert hub.ranges == [None, f"bytes={there}-"]
    assert downloaded().read_bytes() == WEIGHTS
    assert not parts()


def test_a_file_with_a_wrong_checksum_is_deleted(hub: Hub) -> None:
    hub.content = OTHER
    assert_rejected(
        marag("models", "get", "tiny"),
        "The download of 'tiny' does not have the SHA-256 that the hub states and was deleted; run `marag models get "
        "tiny` again.",
    )
    assert not parts()

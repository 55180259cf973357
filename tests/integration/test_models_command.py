"""`marag models`, against a loopback hub."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from meta_agent_rag.cli.main import app
from meta_agent_rag.llm import local
from meta_agent_rag.llm.local import LocalModel, local_models

pytest.importorskip("huggingface_hub")
WEIGHTS = bytes(range(256)) * 2048
"""Half a megabyte standing in for a model file."""
CHUNK = 1 << 14
"""The client's write size, since its default of 10 MB exceeds the whole file here."""
HALF = len(WEIGHTS) // 2


def model() -> LocalModel:
    """A listed model whose file is `WEIGHTS`."""
    return LocalModel(
        name="tiny",
        repository="someone/tiny-GGUF",
        file="tiny.gguf",
        revision="1f" * 20,
        bytes=len(WEIGHTS),
        sha256=hashlib.sha256(WEIGHTS).hexdigest(),
        licence="Apache-2.0",
        parameters=1.5,
        attention=(28, 2, 128),
    )


@dataclass(kw_only=True)
class Hub:
    """What the server sends, and the requests it received.

    `stops` are positions in the file after which the connection breaks, one for each GET; `held` keeps it open instead
    until it is set. `storage` is the address that a GET is redirected to.
    """

    url: str = ""
    content: bytes = WEIGHTS
    sha256: str = hashlib.sha256(WEIGHTS).hexdigest()
    stops: list[int] = field(default_factory=list)
    held: threading.Event | None = None
    storage: str | None = None
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and authorization."""
    ranges: list[str | None] = field(default_factory=list)

    @property
    def downloads(self) -> int:
        """How often the file itself was requested, not only its metadata."""
        return sum(method == "GET" for method, _, _ in self.asked)


@contextmanager
def loopback_hub() -> Iterator[Hub]:
    """Run a hub on a free port."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:  # the library's name
            hub.asked.append(("HEAD", self.path, self.headers.get("authorization")))
            self._head(200, len(hub.content))

        def do_GET(self) -> None:  # the library's name
            if "/resolve/" not in self.path:  # the client's other metadata requests
                return self.send_error(404)
            hub.asked.append(("GET", self.path, self.headers.get("authorization")))
            if hub.storage is not None:
                self.send_response(302)
                self.send_header("Location", hub.storage + self.path)
                return self.end_headers()
            wanted = self.headers.get("range")
            hub.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            stop = hub.stops.pop(0) if hub.stops else len(hub.content)
            self._head(206 if wanted else 200, len(hub.content) - start, start)
            self.wfile.write(hub.content[start : max(start, stop)])
            self.wfile.flush()
            if hub.held is not None and stop < len(hub.content):
                hub.held.wait(60)
            self.close_connection = True
            return None

        def _head(self, status: int, length: int, start: int = 0) -> None:
            self.send_response(status)
            self.send_header("ETag", f'"{hub.sha256}"')
            self.send_header("X-Repo-Commit", "1f" * 20)
            self.send_header("Content-Length", str(length))
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield hub
        server.shutdown()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    from huggingface_hub import constants

    with loopback_hub() as found:
        monkeypatch.setattr(constants, "ENDPOINT", found.url)  # the client reads HF_ENDPOINT only once, on import
        template = found.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", CHUNK)
        monkeypatch.setattr(local, "local_models", lambda: {"tiny": model()})
        yield found


def marag(*words: str, **env: str) -> Result:
    return CliRunner().invoke(app, [*words], env=env)


def downloaded() -> Path:
    return Path("data/models/tiny.gguf")


def parts() -> list[Path]:
    return sorted(downloaded().parent.glob("*.part"))


def test_the_list_shows_what_is_downloaded_and_the_choice_of_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "machine_memory", lambda: 7 * 10**9)
    for name in ("qwen2.5-1.5b", "qwen2.5-7b"):
        file = Path("data/models", local_models()[name].file)
        file.parent.mkdir(exist_ok=True)
        file.touch()
    lines = {line.split()[0]: line for line in marag("models").stdout.splitlines()}
    assert lines["qwen2.5-1.5b"].endswith("downloaded, chosen by auto")
    assert lines["qwen2.5-7b"].endswith("downloaded, too large for this machine")
    reported = json.loads(marag("models", "--json").stdout)
    assert [row["name"] for row in reported if row["auto"]] == ["qwen2.5-1.5b"]


def test_get_downloads_the_pinned_revision_and_checks_it(hub: Hub) -> None:
    result = marag("models", "get", "Tiny", "--json", HF_TOKEN="hf-planted")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"name": "tiny", "path": str(downloaded().absolute()), "sha256": hub.sha256}
    assert downloaded().read_bytes() == WEIGHTS
    assert {path for _, path, _ in hub.asked} == {f"/someone/tiny-GGUF/resolve/{'1f' * 20}/tiny.gguf"}
    assert {key for _, _, key in hub.asked} == {"Bearer hf-planted"}
    assert "hf-planted" not in result.output
    assert not parts()
    assert marag("models", "get", "tiny").exit_code == 0
    assert hub.downloads == 1
    assert "downloaded, chosen by auto" in marag("models").stdout


def test_the_token_stays_with_the_hub_where_another_server_stores_the_file(hub: Hub) -> None:
    with loopback_hub() as storage:
        hub.storage = storage.url
        assert marag("models", "get", "tiny", HF_TOKEN="hf-planted").exit_code == 0
    assert {key for _, _, key in hub.asked} == {"Bearer hf-planted"}
    assert [key for _, _, key in storage.asked] == [None]
    assert downloaded().read_bytes() == WEIGHTS


SCRIPT = """
import sys
from huggingface_hub import constants
from meta_agent_rag.llm.local import fetch
from meta_agent_rag.settings import Settings
from tests.integration.test_models_command import CHUNK, model
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
    hub.content = bytes(len(WEIGHTS))
    result = marag("models", "get", "tiny")
    assert (result.exit_code, "does not have the SHA-256 that the hub states" in result.stderr) == (2, True)
    assert result.stderr.count("\n") == 1, result.stderr
    assert not downloaded().exists()
    assert not parts()

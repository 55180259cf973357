"""Servers on loopback ports for tests: Elasticsearch's and Qdrant's REST APIs, and Redis."""

import ctypes
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

_START_SECONDS = 120
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@pytest.fixture(scope="session")
def elasticsearch_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that runs exactly as long as the tests."""
    spec = find_spec("noida_db")
    assert spec is not None
    assert spec.origin is not None
    binary = Path(spec.origin).with_name("noida-db")
    binary.chmod(0o755)
    port, folder = free_port(), tmp_path_factory.mktemp("elasticsearch")
    words = ["--data-dir", str(folder), "--only", "elasticsearch", "--elasticsearch-port", str(port)]
    yield from _running([str(binary), "start", *words], port, folder)


@pytest.fixture(scope="session")
def qdrant_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that speaks Qdrant's REST API (`tests.qdrant_server`)."""
    folder = tmp_path_factory.mktemp("qdrant")
    port = free_port()
    yield from _running([sys.executable, "-m", "tests.qdrant_server", str(port)], port, folder)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an in-memory Redis that runs as long as the tests; skips them if it is not installed."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed; install it with apt-get")
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    yield from _running(command, port, folder, "redis")


def free_port() -> int:
    """A loopback port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _running(command: Sequence[str], port: int, folder: Path, scheme: str = "http") -> Iterator[str]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=_die_with_parent)  # noqa: PLW1509
    url = f"{scheme}://127.0.0.1:{port}"
    try:
        _wait_for(url, port, process)
        yield url
    finally:
        process.kill()  # its data is temporary, so it need not write it first
        process.wait(10)


def _wait_for(url: str, port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if url.startswith("http:"):
                with urlopen(url, timeout=1):
                    return
            with socket.create_connection(("127.0.0.1", port), 1) as probe:
                probe.sendall(b"PING\r\n")
                if probe.recv(16).startswith(b"+PONG"):
                    return
        except (URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"the server at {url} did not start (exit code {process.poll()})")


def _die_with_parent() -> None:
    """Make sure a killed test session leaves no server running."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)

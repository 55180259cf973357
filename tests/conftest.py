"""Isolate every test: no developer settings, no `.env`, and a data folder of its own."""

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from meta_agent_rag.settings import Settings
from tests.postgres import either_database, new_postgresql, postgresql
from tests.servers import elasticsearch_url, qdrant_url, redis_url

if TYPE_CHECKING:
    from meta_agent_rag.testing.server import Behaviour, LoopbackServer
    from tests.loopback import Serve

__all__ = ["either_database", "elasticsearch_url", "new_postgresql", "postgresql", "qdrant_url", "redis_url"]

LARGE_GROUPS = {
    "browser": ("playwright", "browser/*"),
    "ray": ("ray", "integration/test_cluster_encoder.py"),
    "torch": ("sentence_transformers", "unit/test_torch_encoder.py"),
}
"""Dependency groups that `uv sync` leaves out: a module of each, and the tests that need it."""
LEFT_OUT = [group for group, (module, *_) in LARGE_GROUPS.items() if find_spec(module) is None]
collect_ignore_glob = [tests for group in LEFT_OUT for tests in LARGE_GROUPS[group][1:]]
_MEMORY = Path("/dev/shm")  # pytest creates its own folder in it
_ROOM = 8 << 30
_ROOT = "PYTEST_DEBUG_TEMPROOT"


def pytest_configure(config: pytest.Config) -> None:
    """Keep test files in memory if there is room, since embedded stores wait for the disk at every commit."""
    chosen = config.getoption("basetemp") is not None or _ROOT in os.environ
    if not chosen and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _ROOM:
        os.environ[_ROOT] = str(_MEMORY)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out."""
    if LEFT_OUT:
        terminalreporter.line(
            f"Left out: the tests of {', '.join(LEFT_OUT)}; uv sync --all-groups installs what they need."
        )


ON_TORCH = ("unit/test_torch_encoder.py",)
"""Only one worker imports torch, which takes over ten seconds."""
LONGEST = (
    *ON_TORCH,
    "house/test_documents.py",
    "integration/test_grounded_corpus.py",
    "integration/test_recording.py",
    "integration/test_wheel.py",
)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """Gives a worker one file at a time."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "torch" if file.endswith(ON_TORCH) else "browser" if "/browser/" in file else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Schedule files in collection order, not by their number of tests."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    places = {name: place for place, name in enumerate(LONGEST, start=1)}

    def place(item: pytest.Item) -> int:
        folder, name = item.path.parts[-2:]
        return 0 if folder == "browser" else places.get(f"{folder}/{name}", len(places) + 1)

    items.sort(key=place)


hypothesis.settings.register_profile("patient", deadline=None)  # other processes may be using the CPU
hypothesis.settings.load_profile("patient")


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unset every setting and work in an empty folder with its own data; child processes can import `tests`."""
    (tmp_path / "data").mkdir()
    for name in list(os.environ):
        if name.lower() in Settings.model_fields:
            monkeypatch.delenv(name)
    monkeypatch.setenv("MARAG_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def servers() -> "Iterator[tuple[LoopbackServer, ...]]":
    """Two servers shared by all tests, since starting and stopping one takes longer than most tests."""
    from meta_agent_rag.testing.server import helpful, loopback_server

    with loopback_server(helpful()) as first, loopback_server(helpful()) as second:
        yield first, second


@pytest.fixture
def serve(servers: "tuple[LoopbackServer, ...]", monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "Serve":
    """Give the next server the behaviour a test needs, with its state cleared."""
    from meta_agent_rag.testing.server import LoopbackServer

    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))  # no test uses TLS, and reading certificates takes 0.1 s
    idle = iter(servers)

    def start(behaviour: "Behaviour") -> LoopbackServer:
        server, fresh = next(idle), LoopbackServer(behaviour=behaviour)
        for name in ("behaviour", "bodies", "headers", "account", "listing"):
            setattr(server, name, getattr(fresh, name))
        return server

    return start

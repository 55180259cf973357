"""Isolate every test: no developer settings, no `.env`, and a data folder of its own."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from meta_agent_rag.settings import Settings
from tests.postgres import either_database, new_postgresql, postgresql
from tests.schedule import pytest_collection_modifyitems, pytest_xdist_make_scheduler
from tests.scratch import pytest_configure
from tests.servers import elasticsearch_url, qdrant_url, redis_url

if TYPE_CHECKING:
    from meta_agent_rag.testing.server import Behaviour, LoopbackServer
    from tests.loopback import Serve
    from tests.service import Nursery

__all__ = [
    "either_database",
    "elasticsearch_url",
    "new_postgresql",
    "postgresql",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_xdist_make_scheduler",
    "qdrant_url",
    "redis_url",
]


LARGE_GROUPS = {
    "browser": ("playwright", "browser/*"),
    "ray": ("ray", "integration/test_cluster_encoder.py"),
    "torch": ("sentence_transformers", "unit/test_torch_encoder.py"),
}
"""Dependency groups that `uv sync` leaves out: a module of each, and the tests that need it."""
LEFT_OUT = [group for group, (module, *_) in LARGE_GROUPS.items() if find_spec(module) is None]
collect_ignore_glob = [tests for group in LEFT_OUT for tests in LARGE_GROUPS[group][1:]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out."""
    if LEFT_OUT:
        terminalreporter.line(
            f"Left out: the tests of {', '.join(LEFT_OUT)}; uv sync --all-groups installs what they need."
        )


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


@pytest.fixture(scope="session")
def nursery() -> "Iterator[Nursery]":
    """The process that forks services, started once for all tests because its imports take seconds."""
    from tests.service import Nursery

    started = Nursery.start()
    yield started
    started.close()

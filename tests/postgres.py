"""A real PostgreSQL for tests, and what lets one test run over both databases of the service."""

from collections.abc import Iterator

import pytest

from benchmarks.speed.rigs.postgres import Postgres, postgres
from meta_agent_rag.errors import StorageError
from meta_agent_rag.service.request_record import new_id


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgres]:
    """A server for all tests of this process, or a reason to skip them."""
    try:
        with postgres() as server:
            yield server
    except StorageError as error:
        pytest.skip(str(error))


@pytest.fixture
def new_postgresql(postgresql: Postgres, monkeypatch: pytest.MonkeyPatch) -> Postgres:
    """The server, with an empty database as this test's DATABASE_URL."""
    monkeypatch.setenv("DATABASE_URL", postgresql.new_database(new_id()))
    return postgresql


@pytest.fixture(params=["sqlite", "postgresql"])
def either_database(request: pytest.FixtureRequest) -> str:
    """Have this test run on either database, empty at its start."""
    if request.param == "postgresql":
        request.getfixturevalue("new_postgresql")
    return str(request.param)

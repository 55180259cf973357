"""The service's database: SQLite in the data folder, or PostgreSQL (DATABASE_URL); migrated when opened."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, event, make_url, text, update
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ...errors import SettingsError, StorageError
from ...settings import Settings
from .tables import KEYS

_FILE = "service.sqlite"
_MIGRATIONS = Path(__file__).parent / "migrations"
_CONNECT_SECONDS = 3
_POSTGRESQL = {"connect_timeout": _CONNECT_SECONDS, "keepalives_idle": 10, "tcp_user_timeout": 10_000}
"""Keep-alive settings that detect a server that disappears silently, so that callers do not hang."""
_MIGRATION_LOCK = 5_871_204_417  # any number that is the same in every process


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[AsyncEngine]:
    """The migrated database, closed at the end.

    Raises `StorageError` if the file in the data folder cannot be used, `SettingsError` for DATABASE_URL; also for
    later failures that nobody catches.
    """
    engine, own = _engine(settings), settings.database_url is None
    try:
        with _reported(SQLAlchemyError, OSError, own=own):
            await _brought_up_to_date(engine)
        with _reported(SQLAlchemyError, own=own):
            yield engine
    finally:
        await engine.dispose()


def is_postgresql(engine: AsyncEngine) -> bool:
    """Is this PostgreSQL rather than SQLite?"""
    return engine.dialect.name == "postgresql"


def migrate(connection: Connection) -> None:
    """Bring the tables up to date; idempotent."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    script = ScriptDirectory.from_config(config)

    def upgrades(revision: Any, _context: Any) -> Any:
        return script._upgrade_revs("head", revision)

    with EnvironmentContext(config, script, fn=upgrades, destination_rev="head") as environment:
        environment.configure(connection=connection)
        environment.run_migrations()


async def _brought_up_to_date(engine: AsyncEngine) -> None:
    async with engine.execution_options(immediate=True).begin() as connection:
        # one process at a time: the others find everything done
        if is_postgresql(engine):
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
        await connection.run_sync(migrate)


@contextmanager
def _reported(*faults: type[Exception], own: bool) -> Iterator[None]:
    """Report database errors in a sentence; statements and their values must not be displayed."""
    try:
        yield
    except faults as error:
        cause = str(getattr(error, "orig", None) or error).splitlines()[0]
        if own:
            raise StorageError(
                f"The service's database cannot be used ({cause}); repair it, or choose another MARAG_DATA_DIR."
            ) from None
        raise SettingsError(
            f"The service's database cannot be used ({cause}); start it, or correct DATABASE_URL."
        ) from None


def _engine(settings: Settings) -> AsyncEngine:
    url = _url(settings)
    if url.get_backend_name() == "sqlite":
        _keep_private(Path(url.database or ""))
        engine = create_async_engine(url, hide_parameters=True, connect_args={"timeout": 5.0})
        event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return engine
    try:
        from .postgresql import PromptConnection

        options = {**_POSTGRESQL, "async_creator_fn": PromptConnection.connect}
        return create_async_engine(url, hide_parameters=True, pool_pre_ping=True, connect_args=options)
    except ModuleNotFoundError as error:
        raise SettingsError(f"DATABASE_URL needs the package {error.name!r}, which is not installed.") from None


def _url(settings: Settings) -> URL:
    if settings.database_url is None:
        file = settings.marag_data_dir / _FILE
        return URL.create("sqlite+aiosqlite", database=str(file))
    try:
        url = make_url(settings.database_url.get_secret_value())
    except ArgumentError:
        raise SettingsError(
            "DATABASE_URL is not a URL; write it as postgresql://NAME:PASSWORD@HOST/DATABASE."
        ) from None
    kinds = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg", "sqlite": "sqlite+aiosqlite"}
    known = {*kinds, *kinds.values()}
    if url.drivername not in known:
        raise SettingsError(f"DATABASE_URL names {url.drivername!r}; use PostgreSQL or SQLite.")
    return url.set(drivername=kinds.get(url.drivername, url.drivername))


def _keep_private(file: Path) -> None:
    """Create the database readable only by this user; SQLite gives its log files the same permissions."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        file.chmod(0o600)
    except OSError as error:
        raise StorageError(f"{str(file)!r} cannot be written ({error}); choose another MARAG_DATA_DIR.") from None


async def require_writable(engine: AsyncEngine, seconds: float) -> None:
    """Raise `SQLAlchemyError`, `OSError` or `TimeoutError` if the database cannot be written; changes nothing."""
    async with asyncio.timeout(seconds), engine.execution_options(immediate=True).connect() as connection:
        await connection.execute(update(KEYS).where(KEYS.c.id == "").values(name=KEYS.c.name))
        await connection.rollback()


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own transactions exclude table definitions
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "busy_timeout = 5000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # a transaction that reads before it writes must acquire the write lock at its start
    at_once = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if at_once else "BEGIN")


def in_utc(moment: datetime) -> datetime:
    """A time from the database: SQLite stores no time zone, and UTC is what was written."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

"""The service's database: SQLite in the data folder, or PostgreSQL (DATABASE_URL), with its three tables."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import (
    JSON,
    URL,
    Boolean,
    Column,
    Connection,
    DateTime,
    Dialect,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    event,
    make_url,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ..errors import RequestError, SettingsError, StorageError
from ..settings import Settings
from ..sqlite import use_write_ahead_log

Result = TypeVar("Result")
SESSIONS = "service"
"""The folder of the clients' sessions in the data folder."""
_CREATION_LOCK = 5_871_204_417  # any number that is the same in every process
_POSTGRESQL = {"connect_timeout": 3, "keepalives_idle": 10, "tcp_user_timeout": 10_000}
"""A server that disappears silently is noticed, so that callers do not hang."""


class Moment(TypeDecorator[datetime]):
    """A time in UTC, which SQLite stores without its zone; it may be given as ISO text."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | str | None, dialect: Dialect) -> datetime | None:
        """The stored form of a time."""
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment and moment.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The time that was stored."""
        return value and (value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC))


METADATA = MetaData()
Document = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

KEYS = Table(
    "service_keys",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("name", String(100), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("scopes", Document, nullable=False),
    Column("daily_usd", Double),
    # null: every corpus that the service was started with
    Column("corpora", Document),
    Column("created", Moment, nullable=False),
    Column("expires", Moment),
    Column("revoked", Moment),
)

AUDIT = Table(
    "audit",
    METADATA,
    Column("query_id", String(32), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("client_id", String(16), nullable=False),
    Column("client_name", String(100), nullable=False),
    Column("endpoint", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("success", Boolean, nullable=False),
    Column("error", String(64)),
    Column("question", Text, nullable=False),
    Column("cost_usd", Double),
    # everything else that is known about the response
    Column("record", Document, nullable=False),
    # for each model call its messages and reply; null once they were removed
    Column("prompts", Document),
    Index("audit_at", "at"),
    Index("audit_client_at", "client_id", "at"),
)

UPLOADS = Table(
    "uploads",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("client_id", String(16), nullable=False),
    Column("corpus", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("at", Moment, nullable=False),
    Column("state", String(16), nullable=False),
    Column("message", Text),
    Column("passages", Integer, nullable=False),
    UniqueConstraint("client_id", "corpus", "name"),
    Index("uploads_state", "state", "corpus"),
)


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[AsyncEngine]:
    """The database with its tables, closed at the end.

    Raises `StorageError` if the file in the data folder cannot be used, `SettingsError` for DATABASE_URL; also for
    later failures that nobody catches. Statements and their values are never shown.
    """
    engine = _engine(settings)
    try:
        async with engine.execution_options(immediate=True).begin() as connection:
            if engine.dialect.name == "postgresql":  # one process at a time: the others find everything done
                await connection.execute(text(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})"))
            await connection.run_sync(METADATA.create_all)
        yield engine
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).splitlines()[0]
        own = settings.database_url is None
        remedy = "repair it, or choose another MARAG_DATA_DIR" if own else "start it, or correct DATABASE_URL"
        kind = StorageError if own else SettingsError
        raise kind(f"The service's database cannot be used ({cause}); {remedy}.") from None
    finally:
        await engine.dispose()


async def within(work: Coroutine[Any, Any, Result], seconds: float) -> Result:
    """Do the work, or raise `TimeoutError`; work that ignores its cancellation, as of a hung server, is not awaited."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=max(0.0, seconds))
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.2)
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


async def looked_up(work: Coroutine[Any, Any, Result], seconds: float) -> Result:
    """The result of a look-up. Raises `RequestError` (503) if the database is down or slow."""
    try:
        return await within(work, seconds)
    except (SQLAlchemyError, OSError):
        words = "The service's database cannot be read at the moment; try again later."
        raise RequestError(503, "unavailable", words) from None


async def require_writable(engine: AsyncEngine) -> None:
    """Raise `SQLAlchemyError` or `OSError` if the database cannot be written; changes nothing."""
    async with engine.execution_options(immediate=True).connect() as connection:
        await connection.execute(update(KEYS).where(KEYS.c.id == "").values(name=KEYS.c.name))
        await connection.rollback()


def _engine(settings: Settings) -> AsyncEngine:
    if settings.database_url is None:
        file = settings.marag_data_dir / "service.sqlite"
        try:  # SQLite gives its log files the same permissions
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            file.chmod(0o600)
        except OSError as error:
            raise StorageError(f"{str(file)!r} cannot be written ({error}); choose another MARAG_DATA_DIR.") from None
        url = URL.create("sqlite+aiosqlite", database=str(file))
        engine = create_async_engine(url, hide_parameters=True, connect_args={"timeout": 5.0})
        event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return engine
    try:
        url = make_url(settings.database_url.get_secret_value())
        if url.drivername not in {"postgres", "postgresql"}:
            raise SettingsError(f"DATABASE_URL names {url.drivername!r}; use PostgreSQL.")
        if "@" in (url.host or ""):  # of a password that is not percent-encoded
            raise ValueError
        url = url.set(drivername="postgresql+psycopg")
        return create_async_engine(url, hide_parameters=True, pool_pre_ping=True, connect_args=_POSTGRESQL)
    except (ArgumentError, ValueError):  # the error text may contain a part of the password
        words = (
            "DATABASE_URL is not a URL; write it as postgresql://NAME:PASSWORD@HOST/DATABASE, and percent-encode "
            "special characters of the password."
        )
        raise SettingsError(words) from None


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own transactions exclude table definitions
    use_write_ahead_log(connection, seconds=5.0)
    for pragma in ("synchronous = FULL", "busy_timeout = 5000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # a transaction that reads before it writes must acquire the write lock at its start
    at_once = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if at_once else "BEGIN")

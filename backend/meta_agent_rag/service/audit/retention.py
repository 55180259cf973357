"""Retention of the audit log: whole records, then records without prompts and raw replies, then files.

Works in small portions, each in its own transaction, so that a running service never waits long; the next run
completes what a kill interrupted.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import (
    ColumnElement,
    Executable,
    MetaData,
    Select,
    Table,
    and_,
    delete,
    func,
    literal,
    literal_column,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from ...errors import SettingsError, StorageError
from ...settings import Settings
from ..storage.database import in_utc, is_postgresql
from ..storage.tables import AUDIT
from .archive import ROWS, TABLE, finish, read_archive, unfinished, write_archive
from .months import Month, tables
from .reading import as_json
from .rows import Row

FOLDER = "archive"
_PAGE = 500
_AIM_SECONDS = 0.02
_FEWEST, _MOST = 10, 500
_PAUSE_SECONDS = 0.005
_LOCK = 5_871_204_419  # any number that is the same in every process
_DETACHING_TRIES = 20
_SLIM = {
    "sqlite": "(SELECT json_group_array(json_remove(value, '$.messages', '$.reply')) FROM json_each(model_calls))",
    "postgresql": "(SELECT coalesce(jsonb_agg(call - 'messages' - 'reply' ORDER BY place), '[]') "
    "FROM jsonb_array_elements(model_calls) WITH ORDINALITY AS calls (call, place))",
}
"""The model calls of a row without their content: times, tokens and costs are kept."""
_WHOLE = text("audit.whole")
"""Worded exactly as in the index: SQLite uses a partial index only for the identical condition."""


@dataclass(frozen=True, kw_only=True)
class Ages:
    """Times before which records lose their prompts (`hot`), or leave the database (`warm`)."""

    hot: datetime
    warm: datetime

    @classmethod
    def of(cls, settings: Settings, now: datetime) -> "Ages":
        """The ages in the settings. Raises `SettingsError`."""
        if settings.audit_warm_days < settings.audit_hot_days:
            raise SettingsError(
                f"AUDIT_WARM_DAYS ({settings.audit_warm_days!r}) cannot be less than AUDIT_HOT_DAYS "
                f"({settings.audit_hot_days!r}); raise it."
            )
        return cls(
            hot=now - timedelta(days=settings.audit_hot_days), warm=now - timedelta(days=settings.audit_warm_days)
        )


@dataclass(kw_only=True)
class Portions:
    """Changes many rows in portions, each under its own lock, so that others wait only briefly.

    `size` is the number of rows to change next, adapted to the last duration; `longest` the longest lock, in s.
    """

    size: int = 50
    longest: float = 0.0

    async def change(self, engine: AsyncEngine, statements: Sequence[Executable]) -> None:
        """Run statements in one transaction; others get a turn before this returns. Raises `SQLAlchemyError`."""
        async with engine.execution_options(immediate=True).connect() as connection:
            async with connection.begin():
                began = time.monotonic()
                for statement in statements:
                    await connection.execute(statement)
            took = time.monotonic() - began
        self.longest = max(self.longest, took)
        wanted = int(self.size * min(2.0, _AIM_SECONDS / max(took, 1e-6)))
        self.size = min(_MOST, max(_FEWEST, wanted))
        await asyncio.sleep(_PAUSE_SECONDS)


@dataclass(kw_only=True)
class Done:
    """The result: `records` changed, `files` that now hold them, and the longest lock in seconds."""

    records: int = 0
    files: list[Path] = field(default_factory=list)
    portions: Portions = field(default_factory=Portions)


async def prunable(engine: AsyncEngine, ages: Ages) -> int:
    """The number of records whose prompts are too old."""
    return await _count(engine, and_(_WHOLE, AUDIT.c.at < ages.hot))


async def archivable(engine: AsyncEngine, ages: Ages) -> int:
    """The number of records due to leave the database."""
    return await _count(engine, AUDIT.c.at < ages.warm)


def prunable_before(moment: datetime) -> Select[tuple[datetime, str]]:
    """The keys of records that still have prompts, the oldest first."""
    return select(AUDIT.c.at, AUDIT.c.query_id).where(_WHOLE, AUDIT.c.at < moment).order_by(AUDIT.c.at)


async def prune(engine: AsyncEngine, ages: Ages) -> Done:
    """Remove prompts and raw replies from records that are no longer hot. Raises `SQLAlchemyError`."""
    done = Done()
    slim = update(AUDIT).values(
        whole=False, model_calls=literal_column(_SLIM[engine.dialect.name], AUDIT.c.model_calls.type)
    )
    old = prunable_before(ages.hot)
    while True:
        async with engine.connect() as connection:
            found = (await connection.execute(old.limit(done.portions.size))).all()
        if not found:
            return done
        keys = [(in_utc(row.at), str(row.query_id)) for row in found]
        await done.portions.change(engine, [slim.where(among(keys))])
        done.records += len(keys)


async def archive(engine: AsyncEngine, folder: Path, ages: Ages) -> Done:
    """Prune records that are no longer warm and move them into files in `folder`, one per month.

    Raises `StorageError`, `SQLAlchemyError`; at any moment a record is in the database or in a file.
    """
    pruned = await prune(engine, ages)
    done = Done(portions=pruned.portions)
    async with exclusive(engine, folder):
        await complete(engine, folder, done)
        for month in await _taken_out(engine, ages, done.portions):
            table = AUDIT.to_metadata(MetaData(), name=month.table)
            if path := await write_archive(folder, str(month), TABLE, _pages(engine, table, month.next.begin)):
                await _complete_table(engine, path, done)
            else:
                await _drop(engine, month.table)
        while (oldest := await _oldest(engine, ages)) is not None:
            until = min(oldest.next.begin, ages.warm)
            if path := await write_archive(folder, str(oldest), ROWS, _pages(engine, AUDIT, until)):
                await _complete_rows(engine, path, done)
    return done


async def complete(engine: AsyncEngine, folder: Path, done: Done) -> None:
    """Complete a killed run: remove the records of its files from the database."""
    for path in unfinished(folder, ROWS):
        await _complete_rows(engine, path, done)
    for path in unfinished(folder, TABLE):
        await _complete_table(engine, path, done)


@asynccontextmanager
async def exclusive(engine: AsyncEngine, folder: Path) -> AsyncIterator[None]:
    """Exclusive access to the archives. Raises `StorageError` if another process has it."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    lock = FileLock(folder / "lock", timeout=0, thread_local=False)
    busy = StorageError("Another `marag audit` is working on the archives; wait until it is done.")
    try:
        lock.acquire()
    except Timeout:
        raise busy from None
    try:
        if not is_postgresql(engine):
            yield
            return
        async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            if not (await connection.execute(text(f"SELECT pg_try_advisory_lock({_LOCK})"))).scalar_one():
                raise busy
            try:
                yield
            finally:
                await connection.execute(text(f"SELECT pg_advisory_unlock({_LOCK})"))
    finally:
        lock.release()


def among(keys: Sequence[tuple[datetime, str]]) -> ColumnElement[bool]:
    """The condition that a row is one of these; the times restrict the months that PostgreSQL searches."""
    moments = [at for at, _ in keys]
    return AUDIT.c.query_id.in_([id_ for _, id_ in keys]) & AUDIT.c.at.between(min(moments), max(moments))


async def _count(engine: AsyncEngine, condition: ColumnElement[bool]) -> int:
    async with engine.connect() as connection:
        return int((await connection.execute(select(func.count()).select_from(AUDIT).where(condition))).scalar_one())


async def _oldest(engine: AsyncEngine, ages: Ages) -> Month | None:
    async with engine.connect() as connection:
        query = select(AUDIT.c.at).where(AUDIT.c.at < ages.warm).order_by(AUDIT.c.at).limit(1)
        at = (await connection.execute(query)).scalar_one_or_none()
    return None if at is None else Month.of(in_utc(at))


async def _pages(engine: AsyncEngine, table: Table, until: datetime) -> AsyncIterator[Sequence[Row]]:
    """The rows before a time, oldest first; each page is its own transaction."""
    columns = [column for column in table.c if column.name != "whole"]
    place = tuple_(table.c.at, table.c.query_id)
    query = select(*columns).where(table.c.at < until).order_by(table.c.at, table.c.query_id).limit(_PAGE)
    after: tuple[datetime, str] | None = None
    while True:
        rest = query if after is None else query.where(place > tuple_(*map(literal, after)))
        async with engine.connect() as connection:
            rows: list[dict[str, Any]] = [dict(row._mapping) for row in await connection.execute(rest)]
        if not rows:
            return
        yield [as_json(row) for row in rows]
        after = in_utc(rows[-1]["at"]), rows[-1]["query_id"]


async def _complete_rows(engine: AsyncEngine, path: Path, done: Done) -> None:
    rows = ((datetime.fromisoformat(row["at"]), row["query_id"]) for row in read_archive(path))
    while keys := list(islice(rows, done.portions.size)):
        await done.portions.change(engine, [delete(AUDIT).where(among(keys))])
        done.records += len(keys)
    done.files.append(finish(path))


async def _complete_table(engine: AsyncEngine, path: Path, done: Done) -> None:
    year, number = map(int, path.name.split("-")[1:3])
    done.records += await asyncio.to_thread(lambda: sum(1 for _ in read_archive(path)))
    await _drop(engine, Month(year, number).table)
    done.files.append(finish(path))


async def _taken_out(engine: AsyncEngine, ages: Ages, portions: Portions) -> list[Month]:
    """Months due to leave as a whole, detached from the log; includes those that an earlier run detached."""
    if not is_postgresql(engine):
        return []
    async with engine.connect() as connection:
        inside, outside = await tables(connection, attached=True), await tables(connection, attached=False)
    taken = [Month.named(name) for name in outside]
    for month in map(Month.named, inside):
        if month.next.begin <= ages.warm and await _detached(engine, month.table, portions):
            taken.append(month)
    return taken


async def _detached(engine: AsyncEngine, table: str, portions: Portions) -> bool:
    """Detach a month from the log; if it is constantly in use, its rows are removed one by one."""
    for _ in range(_DETACHING_TRIES):
        try:
            await portions.change(
                engine, [text("SET LOCAL lock_timeout = '50ms'"), text(f"ALTER TABLE audit DETACH PARTITION {table}")]
            )
        except OperationalError:
            await asyncio.sleep(0.1)
        else:
            return True
    return False


async def _drop(engine: AsyncEngine, table: str) -> None:
    async with engine.begin() as connection:
        await connection.execute(text(f"DROP TABLE IF EXISTS {table}"))

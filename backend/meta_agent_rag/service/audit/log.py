"""The audit log: rows go into the spool immediately, and from there into the database, each exactly once."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Insert, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import CompileError, DBAPIError, SQLAlchemyError, StatementError
from sqlalchemy.ext.asyncio import AsyncEngine

from ...errors import StorageError
from ...journal import Journal, read_journal
from ..storage.database import is_postgresql
from ..storage.tables import AUDIT
from .months import keep_making_months, make_months
from .rows import Row, from_journal
from .spool import Spool, open_spool

_LOG = logging.getLogger(__name__)
_BATCH = 200
_WHOLE_ROWS = 1000
"""While the database is unavailable, rows beyond this number are held without prompts and passages."""
_PAUSE_SECONDS = 0.2
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.25, 5.0
_INSERT_SECONDS, _LAST_DRAIN_SECONDS = 30.0, 1.5
"""A database that does not accept a batch within this time counts as unavailable."""
REFUSED = "refused.jsonl"
"""The file for rows that the database rejects."""


@dataclass(kw_only=True)
class AuditLog:
    """`pending` are rows of this process not yet in the database; `fault` is the reason if it refuses them."""

    engine: AsyncEngine
    spool: Spool
    pending: dict[str, Row] = field(default_factory=dict)
    fault: str | None = None
    _new: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def file(self, row: Row) -> None:
        """Store a row. Takes a fraction of a millisecond and survives a kill; raises `StorageError`."""
        self.spool.append(row)
        whole = len(self.pending) < _WHOLE_ROWS  # the spool keeps the complete row
        self.pending[row["query_id"]] = row if whole else {**row, "model_calls": [], "passages": []}
        self._new.set()

    async def read(self, query_id: str, client_id: str) -> Row | None:
        """The row of a response to this client, or `None`."""
        row = self.pending.get(query_id)
        if row is None:
            async with self.engine.connect() as connection:
                found = (await connection.execute(select(AUDIT).where(AUDIT.c.query_id == query_id))).first()
            row = None if found is None else dict(found._mapping)
        return row if row is not None and row["client_id"] == client_id else None

    async def spent(self, client_id: str, since: datetime) -> float:
        """The cost of a client's questions since a moment, in USD; raises `SQLAlchemyError`, `OSError`."""
        waiting = dict(self.pending)  # taken before the sum, so that no row is missed in between
        cost = func.coalesce(func.sum(AUDIT.c.cost_usd), 0.0)
        query = select(cost).where(
            AUDIT.c.client_id == client_id, AUDIT.c.at >= since, AUDIT.c.query_id.not_in(list(waiting))
        )
        async with self.engine.connect() as connection:
            kept = float((await connection.execute(query)).scalar_one())
        own = [row for row in waiting.values() if row["client_id"] == client_id]
        return kept + sum(row["cost_usd"] or 0.0 for row in own if datetime.fromisoformat(row["at"]) >= since)

    async def admitted(self, since: datetime) -> dict[str, int]:
        """The number of admitted requests of each client since a moment."""
        query = (
            select(AUDIT.c.client_id, func.count())
            .where(AUDIT.c.at >= since, AUDIT.c.error.is_distinct_from("rate_limited"))
            .group_by(AUDIT.c.client_id)
        )
        async with self.engine.connect() as connection:
            return {str(row[0]): int(row[1]) for row in await connection.execute(query)}

    async def drain(self) -> None:
        """Write all waiting rows to the database; raises `SQLAlchemyError` or `OSError` if it is unavailable."""
        files, handed = self.spool.take(), list(self.pending)
        for file in files:
            records = await asyncio.to_thread(read_journal, file)
            if records.damaged:
                _LOG.warning("%d damaged lines in %r were skipped.", records.damaged, str(file))
            for start in range(0, len(records.rows), _BATCH):
                await self._insert(records.rows[start : start + _BATCH])
            file.unlink()
        for query_id in handed:
            self.pending.pop(query_id, None)

    async def _insert(self, rows: Sequence[Row]) -> None:
        """Insert rows; a row that the database rejects is set aside, so that it does not hold up the others."""
        try:
            await self._inserted(rows)
        except (StatementError, CompileError, KeyError, ValueError, TypeError, OverflowError) as error:
            if isinstance(error, DBAPIError) and not _is_about_data(error):
                raise
            if len(rows) > 1:
                for row in rows:
                    await self._insert([row])
                return
            _LOG.error("The database rejected an audit row (%s); it was written to %r.", type(error).__name__, REFUSED)
            self._set_aside(rows[0])

    async def _inserted(self, rows: Sequence[Row]) -> None:
        insert = postgresql.insert if is_postgresql(self.engine) else sqlite.insert
        statement: Insert = insert(AUDIT).on_conflict_do_nothing(index_elements=[AUDIT.c.query_id, AUDIT.c.at])
        async with asyncio.timeout(_INSERT_SECONDS), self.engine.begin() as connection:
            await connection.execute(statement, [from_journal(row) for row in rows])

    def _set_aside(self, row: Row) -> None:
        journal = Journal(self.spool.folder / REFUSED, durable=True)
        journal.append(row)
        journal.close()

    async def keep_draining(self) -> None:
        """Drain whenever rows are waiting, until cancelled; retry while the database is unavailable."""
        wait = _FIRST_WAIT_SECONDS
        while True:
            await self._new.wait()
            self._new.clear()
            try:
                await self.drain()
            except Exception as error:  # noqa: BLE001  # in any case the rows are kept and the fault is logged
                if self.fault is None:
                    _LOG.warning(
                        "The audit database is unavailable (%s); records are kept on this machine.",
                        type(error).__name__,
                    )
                self.fault = type(error).__name__
                self._new.set()
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
            else:
                if self.fault is not None:
                    _LOG.info("The audit database is available again; all records were written.")
                self.fault, wait = None, _FIRST_WAIT_SECONDS
                await asyncio.sleep(_PAUSE_SECONDS)  # lets a busy service write batches


def _is_about_data(error: DBAPIError) -> bool:
    """Did the database reject this row, rather than being unavailable?"""
    return type(error).__name__ in {"DataError", "IntegrityError"}


@asynccontextmanager
async def open_audit(engine: AsyncEngine, folder: Path) -> AsyncIterator[AuditLog]:
    """The audit log, draining while it is open, including the rows that earlier processes left."""
    spool = await asyncio.to_thread(open_spool, folder)
    log = AuditLog(engine=engine, spool=spool)
    try:
        await make_months(engine, datetime.now(UTC))
        await log.drain()
    except (SQLAlchemyError, OSError, StorageError):
        log._new.set()
    tasks = [asyncio.create_task(log.keep_draining()), asyncio.create_task(keep_making_months(engine))]
    try:
        yield log
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        try:
            async with asyncio.timeout(_LAST_DRAIN_SECONDS):
                await log.drain()
        except (SQLAlchemyError, OSError, TimeoutError):
            _LOG.warning("%d audit records wait in %r for the next start.", len(log.pending), str(folder))
        spool.close()

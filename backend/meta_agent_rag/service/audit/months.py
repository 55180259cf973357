"""The months of the audit log on PostgreSQL: one partition each, created before its first row."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ..storage.database import is_postgresql

_LOG = logging.getLogger(__name__)
_AHEAD = 2
_SECONDS_BETWEEN_LOOKS = 3600.0
_TABLES = """
SELECT relname FROM pg_class
WHERE relkind = 'r' AND relname ~ '^audit_[0-9]{4}_[0-9]{2}$' AND pg_table_is_visible(oid)
AND EXISTS (SELECT FROM pg_inherits WHERE inhrelid = pg_class.oid) = :attached ORDER BY relname
"""
_LOCK = 5_871_204_418  # any number that is the same in every process


@dataclass(frozen=True, order=True)
class Month:
    """A month in UTC."""

    year: int
    number: int

    @classmethod
    def of(cls, moment: datetime) -> "Month":
        """The month of a moment."""
        utc = moment.astimezone(UTC)
        return cls(utc.year, utc.month)

    @classmethod
    def named(cls, table: str) -> "Month":
        """The month whose partition has this name."""
        return cls(*map(int, table.split("_")[1:3]))

    @property
    def begin(self) -> datetime:
        """Its start."""
        return datetime(self.year, self.number, 1, tzinfo=UTC)

    @property
    def next(self) -> "Month":
        """The month after it."""
        return Month(self.year + self.number // 12, self.number % 12 + 1)

    @property
    def table(self) -> str:
        """The name of its partition."""
        return f"audit_{self.year:04d}_{self.number:02d}"

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.number:02d}"


async def make_months(engine: AsyncEngine, now: datetime) -> None:
    """Create the partitions of this month and the next two; does nothing if the database has no partitions.

    Rows that arrived before their partition existed are moved into it. Raises `SQLAlchemyError`.
    """
    if not is_postgresql(engine):
        return
    month = Month.of(now)
    for _ in range(1 + _AHEAD):
        async with engine.begin() as connection:
            await connection.execute(text("SET LOCAL lock_timeout = '2s'"))
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            if month.table not in await tables(connection, attached=True):
                await _make(connection, month)
        month = month.next


async def keep_making_months(engine: AsyncEngine) -> None:
    """Check every hour for a new month, until cancelled; until its partition exists, rows go to the default one."""
    while True:
        try:
            await make_months(engine, datetime.now(UTC))
        except (SQLAlchemyError, OSError) as error:
            _LOG.warning("The audit partitions of the coming months cannot be created yet (%s).", type(error).__name__)
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)


async def tables(connection: AsyncConnection, *, attached: bool) -> list[str]:
    """Tables of months, sorted: those attached to the log, or those detached from it."""
    found = await connection.execute(text(_TABLES), {"attached": attached})
    return [str(row[0]) for row in found]


async def _make(connection: AsyncConnection, month: Month) -> None:
    """Create a partition with a month's rows from the default one; other months accept rows meanwhile."""
    begin, end = month.begin.isoformat(), month.next.begin.isoformat()
    for statement in (
        "LOCK TABLE audit_other IN SHARE ROW EXCLUSIVE MODE",
        f"CREATE TABLE {month.table} (LIKE audit INCLUDING DEFAULTS INCLUDING CONSTRAINTS)",
        f"WITH moved AS (DELETE FROM audit_other WHERE at >= '{begin}' AND at < '{end}' RETURNING *) "
        f"INSERT INTO {month.table} SELECT * FROM moved",
        f"ALTER TABLE audit ATTACH PARTITION {month.table} FOR VALUES FROM ('{begin}') TO ('{end}')",
    ):
        await connection.execute(text(statement))

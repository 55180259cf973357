"""How long `marag audit prune` and `archive` make a running service wait, and whether they lose anything.

Records of two and a half years, under a clock that advances by a month at a time, while another connection writes
new records as a service does. At the end every record is searched for: recent ones complete in the database, older ones
there without prompts, the oldest in files.
"""

import asyncio
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.service.audit.archive import archives, read_archive
from meta_agent_rag.service.audit.months import make_months
from meta_agent_rag.service.audit.retention import Ages, archive
from meta_agent_rag.service.storage.database import in_utc, open_database
from meta_agent_rag.service.storage.tables import AUDIT
from meta_agent_rag.settings import Settings

from .rigs.audit_rows import fill
from .rigs.postgres import postgres

_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_DAYS = 900
_MONTHS = 3
_NEW = 10_000_000
"""Numbers from here on are records written while the others are being moved."""


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("retention")(retention)


@reporting
def retention(
    n: Annotated[int, typer.Option("--n", help="Records.")] = 200_000,
    postgresql: Annotated[bool, typer.Option(help="Use PostgreSQL instead of SQLite.")] = False,
    json_: Json = False,
) -> None:
    """Longest lock, and losses, while records are pruned and archived under concurrent writes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        words = [f"MARAG_DATA_DIR={folder}"]
        if postgresql:
            server = stack.enter_context(postgres(durable=True))
            words.append(f"DATABASE_URL={server.new_database('retention')}")
        result = asyncio.run(_measured(Settings.load(words), n))
    if json_:
        print_json(result)
        return
    say(f"{result['records']} records on {result['database']}: {result['archived']} into {result['files']} files")
    say(f"longest lock {result['longest_lock_ms']:.0f} ms in {result['seconds']:.0f} s of work")
    say(f"a concurrent writer: {result['written']} records, longest wait {result['longest_wait_ms']:.0f} ms")
    say(f"lost {result['lost']}, doubled {result['doubled']}, in the wrong place {result['misplaced']}")


async def _measured(settings: Settings, n: int) -> dict[str, Any]:
    async with open_database(settings) as engine:
        return await measure(engine, settings, n)


async def measure(engine: AsyncEngine, settings: Settings, n: int, *, days: int = _DAYS) -> dict[str, Any]:
    """Fill a database with `n` records of N days, advance the clock, and search for each of them."""
    moments = {number: _BEGIN + timedelta(days=days) * (number / n) for number in range(n)}
    for month in range(0, days, 30):  # as created by a service that ran all the time
        await make_months(engine, _BEGIN + timedelta(days=month))
    await fill(engine, list(moments.items()))
    writer, folder = (
        _Writer(settings=settings, begin=_BEGIN + timedelta(days=days)),
        settings.marag_data_dir / "audit" / "archive",
    )
    writing = asyncio.create_task(asyncio.to_thread(asyncio.run, writer.write()))
    longest, archived, started = 0.0, 0, time.monotonic()
    for month in range(_MONTHS):
        ages = Ages.of(settings, _BEGIN + timedelta(days=days + 30 * month))
        done = await archive(engine, folder, ages)
        longest, archived = max(longest, done.portions.longest), archived + done.records
    seconds = time.monotonic() - started
    writer.stopped = True
    await writing
    return {
        "database": engine.dialect.name,
        "records": n,
        "archived": archived,
        "files": len(archives(folder)),
        "seconds": seconds,
        "longest_lock_ms": 1000 * longest,
        "written": len(writer.moments),
        "longest_wait_ms": 1000 * writer.longest,
        **await _found(engine, folder, moments | writer.moments, ages),
    }


@dataclass(kw_only=True)
class _Writer:
    """Writes a record at a time, as a service does, in a thread and on its own connection."""

    settings: Settings
    begin: datetime
    moments: dict[int, datetime] = field(default_factory=dict)
    longest: float = 0.0
    stopped: bool = False

    async def write(self) -> None:
        """Write until stopped."""
        async with open_database(self.settings) as engine:
            while not self.stopped:
                number = _NEW + len(self.moments)
                at = self.begin + timedelta(seconds=len(self.moments))
                began = time.monotonic()
                await fill(engine, [(number, at)])
                if self.moments:  # the first write connects
                    self.longest = max(self.longest, time.monotonic() - began)
                self.moments[number] = at
                await asyncio.sleep(0.01)


async def _found(engine: AsyncEngine, folder: Path, moments: dict[int, datetime], ages: Ages) -> dict[str, int]:
    """The number of records that are lost, duplicated or misplaced."""
    kept = [int(row["query_id"], 16) for path in archives(folder) for row in read_archive(path)]
    async with engine.connect() as connection:
        rows = (await connection.execute(select(AUDIT.c.query_id, AUDIT.c.at, AUDIT.c.whole))).all()
    places = Counter(kept) + Counter(int(row.query_id, 16) for row in rows)
    misplaced = sum(moments[number] >= ages.warm for number in kept)
    misplaced += sum((in_utc(row.at) >= ages.hot) != row.whole or in_utc(row.at) < ages.warm for row in rows)
    return {
        "lost": len(moments.keys() - places.keys()),
        "doubled": sum(count > 1 for count in places.values()),
        "misplaced": misplaced,
    }

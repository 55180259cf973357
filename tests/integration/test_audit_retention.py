"""Retention of audit records: complete, then without prompts, then in files; and deletion of a client's data."""

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncEngine
from typer.testing import CliRunner

from benchmarks.speed.retention import measure
from benchmarks.speed.rigs.audit_rows import fill, record
from meta_agent_rag.cli.main import app
from meta_agent_rag.errors import StorageError
from meta_agent_rag.service.audit.archive import archives, read_archive
from meta_agent_rag.service.audit.forgetting import forget, traces
from meta_agent_rag.service.audit.log import AuditLog, open_audit
from meta_agent_rag.service.audit.months import make_months, tables
from meta_agent_rag.service.audit.reading import as_json, latest
from meta_agent_rag.service.audit.retention import Ages, archive, exclusive, prunable_before, prune
from meta_agent_rag.service.audit.rows import Row
from meta_agent_rag.service.audit.spool import open_spool
from meta_agent_rag.service.storage.database import is_postgresql, open_database
from meta_agent_rag.service.storage.tables import AUDIT
from meta_agent_rag.service.uploads.records import Upload, UploadFolder
from tests.loop import settings_in
from tests.service import Nursery

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
AGES = Ages(hot=NOW - timedelta(days=90), warm=NOW - timedelta(days=365))


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


async def occurrences(engine: AsyncEngine, folder: Path) -> Counter[int]:
    """How often each record occurs in the database and in files."""
    async with engine.connect() as connection:
        kept = [int(row.query_id, 16) for row in await connection.execute(select(AUDIT.c.query_id))]
        if is_postgresql(engine):
            for table in await tables(connection, attached=False):
                kept += [int(row[0], 16) for row in await connection.execute(text(f"SELECT query_id FROM {table}"))]
    return Counter(kept) + Counter(int(row["query_id"], 16) for path in archives(folder) for row in read_archive(path))


@pytest.mark.usefixtures("either_database")
async def test_old_records_are_pruned_and_then_archived(tmp_path: Path) -> None:
    folder = tmp_path / "audit" / "archive"
    async with open_database(settings_in(tmp_path)) as engine:
        for days in (410, 380, 0):
            await make_months(engine, days_ago(days))
        ages = [400, 370, 366, 364, 91, 89, 0]
        await fill(engine, [(days, days_ago(days)) for days in ages])
        pruned = await prune(engine, AGES)
        assert pruned.records == 5
        rows = {int(row["query_id"], 16): row for row in await latest(engine, 10)}
        assert rows[89]["model_calls"] == record(0, NOW)["model_calls"]
        assert rows[91]["model_calls"] == [
            {name: value for name, value in call.items() if name not in {"messages", "reply"}}
            for call in record(0, NOW)["model_calls"]
        ]
        done = await archive(engine, folder, AGES)
        assert done.records == 3
        assert [path.name[:13] for path in done.files] == ["audit-2025-10", "audit-2025-11"]
        assert await occurrences(engine, folder) == Counter(ages)
        assert sorted(int(row["query_id"], 16) for row in await latest(engine, 10)) == [0, 89, 91, 364]
        assert sorted(path.name for path in folder.iterdir() if path.name != "lock") == [
            path.name for path in archives(folder)
        ]
        whole = [as_json(record(days, days_ago(days))) for days in ages[:3]]
        read = [row for path in archives(folder) for row in read_archive(path)]
        assert [{**row, "model_calls": None} for row in read] == [{**row, "model_calls": None} for row in whole]
        assert (await archive(engine, folder, AGES)).files == [], "the second run has nothing to do"
        async with exclusive(engine, folder):
            with pytest.raises(StorageError, match="Another"):
                await archive(engine, folder, AGES)


@pytest.mark.usefixtures("either_database")
async def test_archiving_neither_blocks_a_running_service_nor_loses_records(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with open_database(settings) as engine:
        result = await measure(engine, settings, 500, days=450)
    assert (result["lost"], result["doubled"], result["misplaced"]) == (0, 0, 0)
    assert result["archived"] > 100
    assert result["written"] > 1


async def test_pruning_uses_the_index(tmp_path: Path) -> None:
    query = prunable_before(NOW).compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    async with open_database(settings_in(tmp_path)) as engine, engine.connect() as connection:
        (step,) = (await connection.execute(text(f"EXPLAIN QUERY PLAN {query}"))).all()
    assert "USING INDEX audit_whole" in step.detail


async def test_month_partitions_are_created_ahead_and_rows_move_into_them(tmp_path: Path, new_postgresql: Any) -> None:
    assert new_postgresql

    async def where(engine: AsyncEngine) -> list[tuple[str, int]]:
        async with engine.connect() as connection:
            query = "SELECT tableoid::regclass::text AS place, count(*) FROM audit GROUP BY place ORDER BY place"
            return [(str(place), int(count)) for place, count in await connection.execute(text(query))]

    async with open_database(settings_in(tmp_path)) as engine:
        november, december = datetime(2031, 11, 30, 23, tzinfo=UTC), datetime(2031, 12, 1, tzinfo=UTC)
        await fill(engine, [(1, november), (2, december), (3, datetime(2032, 4, 1, tzinfo=UTC))])
        assert await where(engine) == [("audit_other", 3)], "no row is rejected"
        await make_months(engine, november)
        await fill(engine, [(4, december), (5, december - timedelta(microseconds=1))])
        assert await where(engine) == [("audit_2031_11", 2), ("audit_2031_12", 2), ("audit_other", 1)]
        await asyncio.gather(*(make_months(engine, datetime(2032, 2, 1, tzinfo=UTC)) for _ in range(3)))
        assert (await where(engine))[-1] == ("audit_2032_04", 1)
        async with engine.connect() as connection:
            kind = await connection.execute(text("SELECT DISTINCT jsonb_typeof(model_calls) FROM audit"))
            assert kind.scalars().all() == ["array"]
    async with (
        open_database(settings_in(tmp_path)) as engine,
        open_audit(engine, tmp_path / "audit"),
        engine.connect() as connection,
    ):
        made = await tables(connection, attached=True)
    assert datetime.now(UTC).strftime("audit_%Y_%m") in made, "a starting service creates them"


async def test_a_month_detached_by_an_earlier_version_is_archived(tmp_path: Path, new_postgresql: Any) -> None:
    assert new_postgresql
    old = days_ago(410)
    settings, folder = settings_in(tmp_path), tmp_path / "audit" / "archive"
    async with open_database(settings) as engine:
        await make_months(engine, old)
        await fill(engine, [(1, old), (2, NOW)])
        async with engine.begin() as connection:  # as left by version 0002, killed while archiving
            await connection.execute(text(f"ALTER TABLE audit DETACH PARTITION {old:audit_%Y_%m}"))
            for table in ("audit", f"{old:audit_%Y_%m}"):
                added = ("mode", "checks", "coach_success", "hint", "topic", "dropped")
                gone = ", ".join(f"DROP COLUMN {name}" for name in added)
                await connection.execute(text(f"ALTER TABLE {table} {gone}"))
            await connection.execute(text("UPDATE alembic_version SET version_num = '0002'"))
    async with open_database(settings) as engine:
        await archive(engine, folder, AGES)
        assert await occurrences(engine, folder) == {1: 1, 2: 1}
        async with engine.connect() as connection:
            assert await tables(connection, attached=False) == []
    assert [(row["mode"], row["checks"]) for path in archives(folder) for row in read_archive(path)] == [("", {})]


@pytest.mark.slow
@pytest.mark.usefixtures("either_database")
async def test_kills_while_archiving_neither_lose_nor_duplicate_records(nursery: Nursery, tmp_path: Path) -> None:
    settings, chance = settings_in(tmp_path), random.Random(12)
    folder = tmp_path / "audit" / "archive"
    async with open_database(settings) as engine:
        for month in range(3):
            await make_months(engine, days_ago(800 - 30 * month))
        await fill(engine, [(number, days_ago(800 - number / 10)) for number in range(600)])
    cut = 0
    for seconds in (0.03, 0.06, 0.12, 0.25):  # on a fast machine, only an early kill interrupts the run
        pid = await asyncio.to_thread(nursery.start_archiving, tmp_path, AGES)
        await asyncio.sleep(seconds * (1 + chance.random()))
        cut += await asyncio.to_thread(nursery.stop, pid, signal.SIGKILL) != 0
        async with open_database(settings) as engine:
            assert set(await occurrences(engine, folder)) | _under_way(folder) == set(range(600)), (
                "no record is ever missing"
            )
    async with open_database(settings) as engine:
        await archive(engine, folder, AGES)
        assert await occurrences(engine, folder) == Counter(range(600))
        assert cut, "a kill must interrupt a running archive"
        async with engine.connect() as connection:
            assert (await connection.execute(select(func.count()).select_from(AUDIT))).scalar_one() == 0


def _under_way(folder: Path) -> set[int]:
    files = [path for path in folder.glob("audit-*.gz.*") if path.suffix != ".part"]
    return {int(row["query_id"], 16) for path in files for row in read_archive(path)}


@pytest.mark.usefixtures("either_database")
async def test_the_commands_only_report_unless_yes_is_given(tmp_path: Path) -> None:
    settings, data = settings_in(tmp_path / "data"), tmp_path / "data"
    now = datetime.now(UTC)
    async with open_database(settings) as engine:
        await fill(engine, [(1, now - timedelta(days=400)), (2, now - timedelta(days=100))], "one")
        await fill(engine, [(3, now - timedelta(days=401)), (4, now)], "two")
    waiting = data / "audit" / "waiting" / "a.jsonl"
    waiting.parent.mkdir(parents=True)
    waiting.write_text(json.dumps(as_json(record(5, now, "one"))) + "\n")
    sent = UploadFolder.below(data)
    for number, client in enumerate(("one", "two")):
        sent.accept(sent.start(), Upload(id=str(number) * 32, client_id=client, corpus="c", name="a.md", at=0.0))
    (data / "audit" / "refused.jsonl").write_text('{"query_id": "6", "client_id": "one"}\n{"client_id": "two"}\n')

    def run(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(app, ["audit", *words, "--json"])
        assert done.exit_code == 0, done.output
        return dict(json.loads(done.stdout))

    async def reported(*words: str) -> dict[str, Any]:
        return await asyncio.to_thread(run, *words)

    assert await reported("prune") == {"records": 3, "sessions": 0, "done": False}
    assert (await reported("archive"))["records"] == 2
    assert not (data / "audit" / "archive").exists(), "nothing has been archived yet"
    assert await reported("prune", "--yes") == {"records": 3, "sessions": 0, "done": True}
    (file, *_) = (await reported("archive", "--yes"))["files"]
    shown = await asyncio.to_thread(CliRunner().invoke, app, ["audit", "read", file])
    assert "-         speed: Who designed the mill" in shown.stdout, "its mode is unknown"
    found = {"client": "one", "records": 5, "database": 1, "archives": 1, "spool": 2, "uploads": 1}
    assert await reported("forget", "one") == {**found, "done": False}
    assert await reported("forget", "one", "--yes") == {**found, "done": True}
    assert (await reported("forget", "one"))["records"] == 0
    assert (await reported("forget", "two"))["records"] == 4
    assert [path.name for path in (data / "uploads" / ".waiting").iterdir()] == ["1" * 32]
    assert json.loads((data / "audit" / "refused.jsonl").read_text()) == {"client_id": "two"}
    for words in (["read", "none.gz"], ["prune", "--set", "AUDIT_WARM_DAYS=1"]):
        wrong = await asyncio.to_thread(CliRunner().invoke, app, ["audit", *words])
        assert wrong.exit_code == 2, wrong.output


@dataclass
class _Interrupted(AuditLog):
    """Pauses after reading the rows to insert, until the test resumes it."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    reported: asyncio.Event = field(default_factory=asyncio.Event)

    async def _insert(self, rows: Sequence[Row]) -> None:
        self.reached.set()
        await self.reported.wait()
        await super()._insert(rows)


async def test_rows_being_written_are_deleted_too(tmp_path: Path) -> None:
    settings, spool = settings_in(tmp_path), tmp_path / "audit"
    async with open_database(settings) as engine:
        service = _Interrupted(engine=engine, spool=open_spool(spool))
        (spool / "waiting" / "a.jsonl").write_text(json.dumps(as_json(record(1, datetime.now(UTC), "one"))) + "\n")
        service.spool.append(as_json(record(2, datetime.now(UTC), "one")))
        draining = asyncio.create_task(service.drain())
        await service.reached.wait()
        forgetting = asyncio.create_task(forget(settings, engine, spool, "one"))
        await asyncio.wait({forgetting}, timeout=0.5)
        service.reported.set()
        await draining
        assert (await forgetting).spool == 2
        assert (await traces(settings, engine, spool, "one")).total == 0
        service.spool.close()


async def test_a_client_is_forgotten_only_after_its_key_is_revoked(tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        return CliRunner().invoke(app, list(words))

    token = json.loads((await asyncio.to_thread(run, "keys", "create", "site", "--json")).stdout)["id"]
    refused = await asyncio.to_thread(run, "audit", "forget", token, "--yes")
    assert (refused.exit_code, f"keys revoke {token}" in refused.output) == (2, True)
    await asyncio.to_thread(run, "keys", "revoke", token)
    assert (await asyncio.to_thread(run, "audit", "forget", token, "--yes")).exit_code == 0
    assert (tmp_path / "data" / "audit").is_dir()

"""One audit row for each response, whatever the outcome, even if the database is down or the process is killed."""

import asyncio
import gzip
import json
import random
import signal
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine
from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from meta_agent_rag.errors import StorageError
from meta_agent_rag.service.audit import AuditLog, open_audit
from meta_agent_rag.service.database import AUDIT, open_database
from meta_agent_rag.service.retention import latest, prune
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import ServerReply, always
from tests.forked import forked_call
from tests.loop import BIRTH_SENTENCE, QUESTION, settings_in
from tests.loopback import Serve
from tests.postgres_server import Postgres
from tests.service import ASKED, Nursery, bearer, code_of, events_of, running, service_process
from tests.storm import Storm, missing_or_doubled

pytestmark = pytest.mark.slow

KILLS, ANSWERS = 4, 12


async def rows_in(folder: Path) -> list[dict[str, Any]]:
    async with open_database(settings_in(folder)) as database:
        return await latest(database, 100_000)


@pytest.mark.usefixtures("either_database")
async def test_every_response_leaves_one_complete_row(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        good = (await service.ask()).json()
        await service.ask(question="")
        await service.ask(corpus="none")
        streamed = await service.client.post("/v1/ask/stream", json=ASKED)
        answered = next(data for name, data in events_of(streamed.text) if name == "answer")
        await service.client.post("/v1/ask", json=ASKED, headers=bearer("nobody"))
        scopeless = await service.token_for("uploads", "ingest")
        await service.client.post("/v1/ask", json=ASKED, headers=bearer(scopeless))
        record = (await service.client.get(f"/v1/queries/{good['query_id']}")).json()
    rows = await rows_in(tmp_path)
    assert [(row["status"], row["error"]) for row in rows] == [
        (200, None),
        (422, "invalid_request"),
        (404, "unknown_corpus"),
        (200, None),
        (403, "forbidden"),
    ]
    row = rows[0]
    assert (row["query_id"], row["answer_id"], row["answer"]) == (good["query_id"], good["answer_id"], good["answer"])
    assert rows[3]["query_id"] == answered["query_id"]
    assert (row["question"], row["queries"], row["success"]) == (QUESTION, [QUESTION], True)
    assert [one["id"] for one in row["passages"]] == ["film", "birth"]
    assert [call["stage"] for call in row["model_calls"]] == ["write", "second_answer"]
    assert BIRTH_SENTENCE in row["model_calls"][0]["messages"][-1]["content"]
    assert json.loads(row["model_calls"][0]["reply"])["short_answer"] == "Oslo"
    assert row["prompt_tokens"] > 0 < row["completion_tokens"]
    assert row["cost_usd"] == pytest.approx(good["cost_usd"])
    assert set(row["seconds"]) == {"retrieval", "write", "second_answer", "checks"}
    assert row["citations"][0]["snippet"] == BIRTH_SENTENCE
    assert record["record"]["citations"] == row["citations"]
    claims = row["checks"].pop("claims")
    assert row["checks"] == {"quotes": [BIRTH_SENTENCE], "leaks": [], "removed_citations": 0}
    assert (claims[0]["supported"], claims[0]["passage_id"], rows[1]["checks"]) == (True, "birth", None)


@pytest.mark.parametrize("address", ["/v1/ask", "/v1/ask/stream"])
async def test_an_answer_is_cancelled_if_the_client_disconnects(
    address: str, serve: Serve, nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_BASE_URL", serve(always(ServerReply(seconds=30))).base_url)
    monkeypatch.setenv("SERVICE_DEADLINE_SECONDS", "60")
    async with service_process(nursery, tmp_path) as process:
        async with httpx.AsyncClient(headers=bearer(process.token)) as client:
            with pytest.raises(httpx.ReadTimeout):
                await client.post(f"{process.url}{address}", json=ASKED, timeout=1.0)
        for _ in range(100):
            await asyncio.sleep(0.1)
            if rows := await rows_in(tmp_path / "data"):
                break
        process.stop(signal.SIGTERM)
    assert [(row["error"], row["success"]) for row in rows] == [("client_went", False)]
    assert [(call["stage"], call["error"]) for call in rows[0]["model_calls"]] == [("write", "cancelled")]


@pytest.mark.usefixtures("either_database")
async def test_rows_wait_on_this_machine_while_the_database_is_down(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        audit = service.service.audit
        async with audit.engine.begin() as connection:
            await connection.execute(text("ALTER TABLE audit RENAME TO elsewhere"))
        ids = [(await service.ask()).json()["query_id"] for _ in range(3)]
        ready = await service.client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        assert (ready.json()["degraded"], ready.json()["audit_waiting"]) == (["audit"], 3)
        assert (await service.client.get(f"/v1/queries/{ids[0]}")).status_code == 503
        async with audit.engine.begin() as connection:
            await connection.execute(text("ALTER TABLE elsewhere RENAME TO audit"))
        async with asyncio.timeout(30):
            while (await service.client.get("/readyz")).json()["status"] != "ready":  # noqa: ASYNC110  # no event
                await asyncio.sleep(0.1)
        assert (await service.client.get(f"/v1/queries/{ids[0]}")).status_code == 200
    assert [row["query_id"] for row in await rows_in(tmp_path)] == ids


@pytest.mark.usefixtures("either_database")
async def test_waiting_rows_are_inserted_once_even_if_torn_doubled_or_rejected(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        await service.ask()
    async with open_database(settings_in(tmp_path)) as database:
        row = (await _stored(database))[0]
        whole = json.dumps(row)
        (tmp_path / "audit").mkdir(exist_ok=True)
        others = [json.dumps({**row, "query_id": digit * 32}) for digit in "ab"]
        rejected = json.dumps({**row, "query_id": "c" * 32, "client_name": None})
        (tmp_path / "audit" / "waiting.jsonl").write_text("\n".join([whole, rejected, others[0], whole[:40]]))
        (tmp_path / "audit" / "waiting-1.jsonl").write_text("\n".join([others[1], others[0]]))
        async with open_audit(database, tmp_path) as log:
            assert (log.waiting, log.fault) == (0, None)
        assert sorted(one["query_id"] for one in await latest(database, 10)) == sorted(
            [row["query_id"], "a" * 32, "b" * 32]
        )
    assert "c" * 32 in (tmp_path / "audit" / "rejected.jsonl").read_text()
    assert not [*(tmp_path / "audit").glob("waiting*.jsonl")]


async def _stored(engine: AsyncEngine) -> list[dict[str, Any]]:
    """The rows of the table in the form in which they wait."""
    async with engine.connect() as connection:
        rows = [dict(row._mapping) for row in (await connection.execute(AUDIT.select())).all()]
    return [{**row, "at": row["at"].replace(tzinfo=UTC).isoformat()} for row in rows]


@pytest.mark.usefixtures("either_database", "patient_service")
async def test_kills_neither_lose_nor_duplicate_rows(nursery: Nursery, tmp_path: Path) -> None:
    async with service_process(nursery, tmp_path) as process:

        def killed() -> None:
            process.stop(signal.SIGKILL)
            process.start()

        storm = Storm(url=process.url, token=process.token, body=ASKED)
        await storm.through([killed] * KILLS, answers=ANSWERS, chance=random.Random(8))
        process.stop(signal.SIGTERM)
    missing, doubled, unheard = await missing_or_doubled(Settings.load(), storm.received)
    assert (missing, doubled) == (0, 0)
    assert unheard <= storm.clients * KILLS, "requests in progress at a kill may have left a row"


@pytest.mark.usefixtures("patient_service")
async def test_stopping_postgresql_loses_no_row(new_postgresql: Postgres, nursery: Nursery, tmp_path: Path) -> None:
    def stopped() -> None:
        new_postgresql.stop("immediate")
        new_postgresql.start()

    async with service_process(nursery, tmp_path) as process:
        storm = Storm(url=process.url, token=process.token, body=ASKED)
        await storm.through([stopped], answers=ANSWERS, chance=random.Random(8))
        process.stop(signal.SIGTERM)
    assert storm.statuses[200] == len(storm.received), "answers do not wait for the database"
    missing, doubled, _ = await missing_or_doubled(Settings.load(), storm.received)
    assert (missing, doubled) == (0, 0)


@pytest.fixture
def patient_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the deadline so that no answer is late on a busy machine."""
    monkeypatch.setenv("SERVICE_DEADLINE_SECONDS", "60")


async def test_an_answer_that_cannot_be_recorded_is_withheld_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def full(self: AuditLog, rows: Sequence[Any]) -> None:
        raise StorageError("'waiting.jsonl' cannot be written (no space left on device).")

    async with running(tmp_path) as service:
        monkeypatch.setattr(AuditLog, "_write", full)
        refused = await service.ask()
        streamed = await service.client.post("/v1/ask/stream", json=ASKED)
        assert service.service.metrics.in_flight._value.get() == 0
    assert (refused.status_code, code_of(refused)) == (503, "unavailable")
    reported = events_of(streamed.text)
    assert [name for name, _ in reported][-2:] == ["error", "done"]
    assert reported[-2][1]["error"]["code"] == "unavailable"
    assert "Oslo" not in streamed.text
    whys = [getattr(record, "fields", {}).get("why", "") for record in caplog.records if record.levelname == "ERROR"]
    assert len(whys) == 2
    assert all("no space left" in why for why in whys)


NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


async def fill(folder: Path, days: Sequence[float], client_id: str = "one") -> None:
    """Add records of these ages in days, copied from a real one; the query id is the number of days."""
    async with running(folder) as service:
        await service.ask()
    async with open_database(settings_in(folder)) as database:
        row = (await _stored(database))[0]
        rows = [
            {**row, "query_id": f"{int(age):032d}", "client_id": client_id, "at": NOW - timedelta(days=age)}
            for age in days
        ]
        async with database.begin() as connection:
            await connection.execute(AUDIT.delete().where(AUDIT.c.query_id == row["query_id"]))
            await connection.execute(insert(AUDIT), rows)


def _in_files(folder: Path) -> list[int]:
    files = (folder / "audit").glob("audit-until-*.jsonl.gz")
    return [int(json.loads(line)["query_id"]) for file in files for line in gzip.open(file)]


@pytest.mark.usefixtures("either_database")
async def test_old_records_lose_their_prompts_and_then_leave_the_database(tmp_path: Path) -> None:
    await fill(tmp_path, [400, 366, 364, 91, 89, 0])
    async with open_database(settings_in(tmp_path)) as engine:
        done = await prune(engine, settings_in(tmp_path), NOW)
        assert (done.slimmed, done.expired) == (4, 2)
        rows = {int(row["query_id"]): row for row in await latest(engine, 10)}
        assert sorted(rows) == [0, 89, 91, 364]
        assert BIRTH_SENTENCE in rows[89]["model_calls"][0]["messages"][-1]["content"]
        for age in (91, 364):
            assert rows[age]["model_calls"][0]["prompt_tokens"] > 0
            assert "messages" not in rows[age]["model_calls"][0]
            assert "reply" not in rows[age]["model_calls"][0]
            assert rows[age]["answer"] == rows[0]["answer"]
        again = await prune(engine, settings_in(tmp_path), NOW)
        assert (again.slimmed, again.expired, again.file) == (0, 0, None)
    assert sorted(_in_files(tmp_path)) == [366, 400]


def prune_records(folder: Path) -> None:
    """Prune a data folder."""

    async def work() -> None:
        async with open_database(settings_in(folder)) as engine:
            await prune(engine, settings_in(folder), NOW)

    asyncio.run(work())


async def test_kills_while_pruning_lose_no_record(tmp_path: Path) -> None:
    ages = list(range(366, 366 + 3000))
    await fill(tmp_path, ages)
    killed, chance = 0, random.Random(12)
    for _ in range(6):
        child = forked_call(prune_records, tmp_path, folder=tmp_path)
        await asyncio.sleep(0.1 + 0.4 * chance.random())
        child.send(signal.SIGKILL)
        killed += await asyncio.to_thread(child.ended) != 0
        async with open_database(settings_in(tmp_path)) as engine:
            kept = [int(row["query_id"]) for row in await latest(engine, 10_000)]
        assert {*kept, *_in_files(tmp_path)} == set(ages), "no record is ever missing"
    assert killed
    async with open_database(settings_in(tmp_path)) as engine:
        await prune(engine, settings_in(tmp_path), NOW)
        assert await latest(engine, 10) == []
    assert set(Counter(_in_files(tmp_path))) == set(ages)


async def test_the_retention_commands_only_report_unless_yes_is_given(tmp_path: Path) -> None:
    data, days = tmp_path / "data", (datetime.now(UTC) - NOW).total_seconds() / 86_400
    await fill(data, [400 - days, 100 - days])
    waiting = {"query_id": "5", "client_id": "one"}
    (data / "audit").mkdir(exist_ok=True)
    (data / "audit" / "rejected.jsonl").write_text(json.dumps(waiting) + '\n{"client_id": "two"}\n')

    def run(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(app, ["audit", *words, "--json"])
        assert done.exit_code == 0, done.output
        return dict(json.loads(done.stdout))

    async def reported(*words: str) -> dict[str, Any]:
        return await asyncio.to_thread(run, *words)

    for _ in range(2):
        would = await reported("prune")
        assert (would["slimmed"], would["expired"], would["done"]) == (2, 1, False)
    done = await reported("prune", "--yes")
    assert (done["slimmed"], done["expired"], done["done"], len(_in_files(data))) == (2, 1, True, 1)
    found = {"client": "one", "records": 3, "database": 1, "files": 2, "uploads": 0}
    assert await reported("forget", "one") == {**found, "done": False}
    assert await reported("forget", "one", "--yes") == {**found, "done": True}
    assert (await reported("forget", "one"))["records"] == 0
    assert json.loads((data / "audit" / "rejected.jsonl").read_text()) == {"client_id": "two"}
    wrong = await asyncio.to_thread(CliRunner().invoke, app, ["audit", "prune", "--set", "AUDIT_WARM_DAYS=1"])
    assert wrong.exit_code == 2, wrong.output

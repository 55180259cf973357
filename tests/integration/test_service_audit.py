"""One audit row for each response, whatever the outcome, even if the database is down or the process is killed."""

import asyncio
import json
import os
import random
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from benchmarks.speed.rigs.audit_rows import fill
from benchmarks.speed.rigs.postgres import Postgres
from benchmarks.speed.rigs.storm import Storm, verdict
from meta_agent_rag.cli.main import app
from meta_agent_rag.errors import InputError, StorageError
from meta_agent_rag.journal import read_journal
from meta_agent_rag.service.audit import reading
from meta_agent_rag.service.audit.log import AuditLog, open_audit
from meta_agent_rag.service.audit.reading import as_json, latest
from meta_agent_rag.service.audit.rows import Row
from meta_agent_rag.service.audit.spool import Spool, open_spool
from meta_agent_rag.service.storage.database import migrate, open_database
from meta_agent_rag.service.storage.tables import METADATA
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.testing.server import ServerReply, always
from tests.forked import forked_call
from tests.loop import BIRTH_SENTENCE, QUESTION, settings_in
from tests.loopback import Serve
from tests.service import ASKED, SCRIPT, Nursery, bearer, code_of, events_of, running, service_process

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
    assert (claims[0]["supported"], claims[0]["passage_id"], rows[1]["checks"]) == (True, "birth", {})


@pytest.mark.usefixtures("either_database")
async def test_a_record_is_visible_only_to_its_client(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        id_ = (await service.ask()).json()["query_id"]
        other = await service.token_for("other", "ask", "admin")
        address = f"/v1/queries/{id_}"
        for _ in range(2):  # while pending, and once it is in the database
            assert (await service.client.get(address)).json()["query_id"] == id_
            assert (await service.client.get(address, headers=bearer(other))).status_code == 404
            await service.drained()
        for wrong in ("x", "..%2F..%2Fetc", "0" * 31, "'; DROP TABLE audit; --"):
            assert (await service.client.get(f"/v1/queries/{wrong}")).status_code == 404


async def test_a_timed_out_request_is_recorded_with_its_cost(tmp_path: Path) -> None:
    model = ScriptedModel(SCRIPT, seconds=0.4)
    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=0.6", model=model) as service:
        assert (await service.ask()).status_code == 504
    (row,) = await rows_in(tmp_path)
    assert (row["status"], row["error"], row["success"], row["answer"]) == (504, "timeout", False, None)
    assert [(call["stage"], call["error"]) for call in row["model_calls"]] == [
        ("write", None),
        ("second_answer", "timeout"),
    ]
    assert row["prompt_tokens"] > 0


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
async def test_rows_are_held_while_the_database_is_down(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        audit: AuditLog = service.service.audit
        async with audit.engine.begin() as connection:
            await connection.execute(text("ALTER TABLE audit RENAME TO elsewhere"))
        ids = [(await service.ask()).json()["query_id"] for _ in range(3)]
        await asyncio.sleep(0.4)
        ready = (await service.client.get("/readyz")).json()
        assert (ready["status"], ready["degraded"], ready["audit_waiting"]) == ("degraded", ["audit"], 3)
        assert (await service.client.get(f"/v1/queries/{ids[0]}")).status_code == 200
        async with audit.engine.begin() as connection:
            await connection.execute(text("ALTER TABLE elsewhere RENAME TO audit"))
        await service.drained()
        await asyncio.sleep(0.1)
        assert service.service.degraded() == []
    assert [row["query_id"] for row in await rows_in(tmp_path)] == ids


@pytest.mark.usefixtures("either_database")
async def test_a_row_rejected_by_the_database_does_not_block_others(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        audit = service.service.audit
        await service.ask()
        (row,) = audit.pending.values()
        audit.file({**row, "query_id": "f" * 32, "client_name": None})
        audit.file({**row, "query_id": "e" * 32, "answer": "half a pair \ud800"})
        audit.file(row)
        await service.drained()
    assert len(await rows_in(tmp_path)) == 1
    refused = read_journal(tmp_path / "audit" / "refused.jsonl").rows
    assert [one["query_id"][0] for one in refused] == ["f", "e"]


@pytest.mark.usefixtures("either_database")
async def test_truncated_lines_and_duplicate_files_are_handled(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        await service.ask()
        (row,) = service.service.audit.pending.values()
    spool = tmp_path / "audit"
    whole = json.dumps(row).encode()
    (spool / "slot-0" / "live.jsonl").write_bytes(whole + b"\n" + whole[:40])
    earlier = {name: value for name, value in row.items() if name != "mode"}  # as written by an earlier version
    (spool / "waiting" / "a.jsonl").write_bytes(whole + b"\n" + json.dumps({**earlier, "query_id": "e" * 32}).encode())
    async with open_database(settings_in(tmp_path)) as database, open_audit(database, spool) as log:
        assert not log.spool.take()
        assert [one["mode"] for one in await latest(database, 10)] == ["grounded", ""]


def test_each_process_has_its_own_spool_slot(tmp_path: Path) -> None:
    first, second = open_spool(tmp_path), open_spool(tmp_path)
    assert first.slot != second.slot
    second.append({"query_id": "1"})
    assert second._journal is not None
    second._journal.close()  # like a kill
    second.lock.release()
    third = open_spool(tmp_path)
    assert third.slot == second.slot
    assert [read_journal(file).rows[0]["query_id"] for file in third.take()] == ["1"]
    for spool in (first, third):
        spool.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        open_spool(tmp_path / "file")


@pytest.mark.usefixtures("either_database")
async def test_migrations_create_the_tables_defined_in_code(tmp_path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    def differences(connection: Any) -> Any:
        migrate(connection)  # the second time has no effect
        context = MigrationContext.configure(connection, opts={"include_object": without_months})
        return compare_metadata(context, METADATA)

    def without_months(_object: Any, name: str | None, *_: Any) -> bool:
        return not (name or "").startswith("audit_2") and name != "audit_other"

    async with open_database(settings_in(tmp_path)) as database, database.connect() as connection:
        assert await connection.run_sync(differences) == []


async def test_an_unusable_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "service.sqlite").write_text("no database " * 100)
    with pytest.raises(StorageError, match="not a database"):
        await rows_in(tmp_path)


@pytest.mark.usefixtures("either_database", "patient_service")
async def test_kills_neither_lose_nor_duplicate_rows(nursery: Nursery, tmp_path: Path) -> None:
    async with service_process(nursery, tmp_path) as process:

        def killed() -> None:
            process.stop(signal.SIGKILL)
            process.start()

        storm = Storm(url=process.url, token=process.token, body=ASKED)
        await storm.through([killed] * KILLS, answers=ANSWERS, chance=random.Random(8))
        process.stop(signal.SIGTERM)
    found = await verdict(Settings.load(), storm.received)
    assert (found.missing, found.doubled) == (0, 0)
    assert found.unheard <= storm.clients * KILLS, "requests in progress at a kill may have left a row"


@pytest.mark.usefixtures("patient_service")
async def test_stopping_postgresql_delays_no_answer_and_loses_no_row(
    new_postgresql: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    def stopped() -> None:
        new_postgresql.stop("immediate")
        new_postgresql.start()

    async with service_process(nursery, tmp_path) as process:
        storm = Storm(url=process.url, token=process.token, body=ASKED)
        await storm.through([stopped], answers=ANSWERS, chance=random.Random(8))
        process.stop(signal.SIGTERM)
    assert storm.statuses[200] == len(storm.received), "answers do not wait for the database"
    found = await verdict(Settings.load(), storm.received)
    assert found.rows == found.responses
    assert (found.missing, found.doubled) == (0, 0)


@pytest.fixture
def patient_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the deadline so that no answer is late on a busy machine."""
    monkeypatch.setenv("SERVICE_DEADLINE_SECONDS", "60")


async def test_an_answer_that_cannot_be_recorded_is_withheld_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: Spool, row: Row) -> None:
        raise StorageError("'live.jsonl' cannot be written (no space left on device).")

    async with running(tmp_path) as service:
        monkeypatch.setattr(Spool, "append", full)
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


async def test_an_unrecordable_request_completes_after_a_disconnect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Spool, row: Row) -> None:
        raise StorageError("'live.jsonl' cannot be written (no space left on device).")

    body = [{"type": "http.request", "body": json.dumps(ASKED).encode(), "more_body": False}]

    async def received() -> dict[str, Any]:
        return body.pop() if body else {"type": "http.disconnect"}

    async def sent(message: Any) -> None:
        raise AssertionError(f"the client has disconnected, but was sent {message}")

    async with running(tmp_path) as service:
        monkeypatch.setattr(Spool, "append", full)
        scope = {
            **{"type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/v1/ask"},
            **{"raw_path": b"/v1/ask", "query_string": b"", "root_path": ""},
            "headers": [(b"authorization", f"Bearer {service.token}".encode()), (b"content-type", b"application/json")],
        }
        await service.app(scope, received, sent)
        assert service.service.metrics.in_flight._value.get() == 0


def jsonl_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if "jsonl" in path.name)


def export_that_stalls(path: Path) -> None:
    """Export, then signal and stall before the third row."""
    seen: list[Row] = []

    def stalling(row: Row) -> dict[str, Any]:
        seen.append(row)
        if len(seen) == 3:
            path.with_name("stalled").touch()
            time.sleep(60)
        return as_json(row)

    async def work() -> None:
        async with open_database(Settings.load()) as database:
            await reading.export(database, path, since=None, client_id=None)

    reading.as_json = stalling
    asyncio.run(work())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_an_interrupted_export_leaves_no_file(number: signal.Signals, tmp_path: Path) -> None:
    async with open_database(settings_in(tmp_path / "data")) as database:
        await fill(database, [(count, datetime(2026, 11, 1, second=count, tzinfo=UTC)) for count in range(5)])
        whole, stalled = tmp_path / "all.jsonl", tmp_path / "stalled"
        child = forked_call(export_that_stalls, whole, folder=tmp_path)
        while not stalled.exists():  # no event signals it from another process
            assert child.running
            await asyncio.sleep(0.01)
        child.send(number)
        assert await asyncio.to_thread(child.ended) == -number
        assert not whole.exists()
        assert await reading.export(database, whole, since=None, client_id=None) == 5
    assert len(whole.read_text().splitlines()) == 5
    assert jsonl_in(tmp_path) == ["all.jsonl"]


@pytest.mark.parametrize("linking", [True, False])
async def test_an_export_overwrites_no_file(linking: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "no hard links here")

    def made_meanwhile(row: Row) -> dict[str, Any]:
        (tmp_path / "other.jsonl").write_text("another's")
        return as_json(row)

    if not linking:
        monkeypatch.setattr(os, "link", refused)
    async with open_database(settings_in(tmp_path / "data")) as database:
        await fill(database, [(0, datetime(2026, 11, 1, tzinfo=UTC))])
        assert await reading.export(database, tmp_path / "own.jsonl", since=None, client_id=None) == 1
        monkeypatch.setattr(reading, "as_json", made_meanwhile)
        for _ in range(2):  # first it appears during the export, then it already exists
            with pytest.raises(InputError, match="already exists"):
                await reading.export(database, tmp_path / "other.jsonl", since=None, client_id=None)
    assert jsonl_in(tmp_path) == ["other.jsonl", "own.jsonl"]
    assert (tmp_path / "other.jsonl").read_text() == "another's"


async def test_the_command_shows_and_exports_records(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as service:
        await service.ask()
        await service.ask(question="")
        client_id = service.token.split("_")[1]

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, ["audit", *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    async def reported(*words: str) -> str:
        return await asyncio.to_thread(run, *words)

    shown = (await reported("tail", "--n", "5")).splitlines()
    assert ["Oslo" in shown[0], "invalid_request" in shown[1]] == [True, True]
    await reported("export", "all.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == [200, 422]
    assert json.loads(await reported("export", "own.jsonl", "--client", client_id, "--json"))["records"] == 2
    assert json.loads(await reported("export", "none.jsonl", "--since", "2999-01-01", "--json"))["records"] == 0
    for words in (["export", "all.jsonl"], ["export", "x.jsonl", "--since", "yesterday"]):
        wrong = await asyncio.to_thread(CliRunner().invoke, app, ["audit", *words])
        assert wrong.exit_code == 2

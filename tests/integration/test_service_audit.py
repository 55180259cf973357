"""One audit row for each response, whatever the outcome, even if the database is down or the process is killed."""

import asyncio
import json
import random
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, insert, select, text
from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from meta_agent_rag.errors import StorageError
from meta_agent_rag.service.audit import AuditLog, open_audit, prune, selected
from meta_agent_rag.service.database import AUDIT, open_database
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from tests.loop import BIRTH_SENTENCE, QUESTION, settings_in
from tests.postgres import Postgres
from tests.service import ASKED, GOOD, SCRIPT, code_of, events_of, running, service_process

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
_COUNTED = "x-ratelimit-limit"
_BETWEEN_TRIES = 0.02
_PATIENCE_SECONDS = 120.0


@dataclass(kw_only=True)
class Storm:
    """The load: clients, questions and service; `received` are query ids of recorded responses.

    Only responses to a known key are recorded: if keys cannot be read in time, the client is unknown.
    """

    url: str
    token: str
    body: Mapping[str, Any]
    clients: int = 6
    received: list[str] = field(default_factory=list)
    _over: bool = False

    async def through(self, events: Sequence[Callable[[], object]], *, answers: int, chance: random.Random) -> None:
        """Trigger each event at a random moment after N more responses; end with answers after the last event."""
        asking = [asyncio.create_task(self._keep_asking()) for _ in range(self.clients)]
        try:
            for event in events:
                await self._more(answers)
                await asyncio.sleep(0.1 * chance.random())
                await asyncio.to_thread(event)
            await self._more(answers)
        finally:
            self._over = True
            await asyncio.gather(*asking)

    async def _more(self, answers: int) -> None:
        wanted = len(self.received) + answers
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while len(self.received) < wanted:  # noqa: ASYNC110  # six clients, without an event for each number
                await asyncio.sleep(_BETWEEN_TRIES)

    async def _keep_asking(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx.AsyncClient(headers=headers, timeout=30) as client:
            while not self._over:
                with suppress(httpx.TransportError):
                    response = await client.post(f"{self.url}/v1/ask", json=dict(self.body))
                    if _COUNTED in response.headers:
                        self.received.append(response.headers["x-query-id"])
                    continue
                await asyncio.sleep(_BETWEEN_TRIES)


async def missing_or_doubled(settings: Settings, received: Sequence[str]) -> tuple[int, int]:
    """How many responses have no row and several rows."""
    query = select(AUDIT.c.query_id, func.count()).group_by(AUDIT.c.query_id)
    async with open_database(settings) as engine:
        async with open_audit(engine, settings.marag_data_dir) as log:  # inserts what a kill left on this machine
            assert log.fault is None
        async with engine.connect() as connection:
            rows = {str(id_): int(count) for id_, count in await connection.execute(query)}
    return len(set(received) - rows.keys()), sum(count > 1 for count in rows.values())


async def rows_in(folder: Path) -> list[dict[str, Any]]:
    async with open_database(settings_in(folder)) as database:
        return await selected(database)


@pytest.mark.usefixtures("either_database")
async def test_every_response_leaves_one_complete_row(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        good = (await service.ask()).json()
        await service.ask(question="")
        streamed = await service.client.post("/v1/ask/stream", json=ASKED)
        answered = next(data for name, data in events_of(streamed.text) if name == "answer")
        await service.client.post("/v1/ask", json=ASKED, headers={"Authorization": "Bearer nobody"})
    rows = await rows_in(tmp_path)
    assert [(row["status"], row["error"]) for row in rows] == [(200, None), (422, "invalid_request"), (200, None)]
    row = rows[0]
    assert (row["query_id"], row["answer"]) == (good["query_id"], good["answer"])
    assert rows[2]["query_id"] == answered["query_id"]
    assert (row["question"], row["queries"], row["success"]) == (QUESTION, [QUESTION], True)
    assert [one["id"] for one in row["passages"]] == ["film", "birth"]
    assert [call["stage"] for call in row["model_calls"]] == ["write", "second_answer"]
    assert BIRTH_SENTENCE in row["prompts"][0]["messages"][-1]["content"]
    assert json.loads(row["prompts"][0]["reply"])["short_answer"] == "Oslo"
    assert row["cost_usd"] == pytest.approx(good["cost_usd"])
    assert (row["checks"]["claims"][0]["supported"], row["checks"]["quotes"]) == (True, [BIRTH_SENTENCE])


async def test_texts_are_recorded_as_they_are_but_for_null_bytes(tmp_path: Path) -> None:
    question = r"Is \u0000 or \\u0000 a null byte?"
    async with running(
        tmp_path, model=ScriptedModel({**SCRIPT, "write": {**GOOD, "answer": "a\x00\\\x00"}})
    ) as service:
        assert (await service.ask(question=question)).status_code == 200
        assert (await service.ask()).status_code == 200
    rows = await rows_in(tmp_path)
    assert rows[0]["question"] == question
    assert json.loads(rows[1]["prompts"][0]["reply"])["answer"] == "a\x00\\\x00"


@pytest.mark.usefixtures("either_database")
async def test_rows_wait_on_this_machine_while_the_database_is_down(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        audit = service.service.audit
        async with audit.engine.begin() as connection:
            await connection.execute(text("ALTER TABLE audit RENAME TO elsewhere"))
        ids = [(await service.ask()).json()["query_id"] for _ in range(3)]
        ready = (await service.client.get("/readyz")).json()
        assert (ready["status"], ready["degraded"]) == ("degraded", ["audit"])
        assert (await service.client.get(f"/v1/queries/{ids[0]}")).status_code == 503
        async with audit.engine.begin() as connection:
            await connection.execute(text("ALTER TABLE elsewhere RENAME TO audit"))
        await audit.drain()
        assert (await service.client.get("/readyz")).json()["status"] == "ready"
    assert [row["query_id"] for row in await rows_in(tmp_path)] == ids


@pytest.mark.usefixtures("either_database")
async def test_waiting_rows_are_inserted_once_and_a_rejected_one_blocks_no_other(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        await service.ask()
    async with open_database(settings_in(tmp_path)) as database, database.connect() as connection:
        row = dict((await connection.execute(AUDIT.select())).one()._mapping)
    row["at"] = row["at"].isoformat()  # as it would wait
    one, other, bad = (json.dumps({**row, "query_id": digit * 32}) for digit in "abc")
    bad = bad.replace('"status": 200', '"status": null')
    wrong = json.dumps({**row, "query_id": "d" * 32, "question": {"a": 1}})
    (tmp_path / "audit").mkdir(exist_ok=True)
    (tmp_path / "audit" / "waiting.jsonl").write_text("\n".join([bad, wrong, json.dumps(row), one, one[:40]]))
    (tmp_path / "audit" / "waiting-1.jsonl").write_text("\n".join([other, bad, one]))
    async with open_database(settings_in(tmp_path)) as database, open_audit(database, tmp_path) as log:
        assert log.fault is None
    assert {one["query_id"] for one in await rows_in(tmp_path)} == {row["query_id"], "a" * 32, "b" * 32}
    assert not [*(tmp_path / "audit").glob("waiting*.jsonl")]
    rejected = (tmp_path / "audit" / "rejected.jsonl").read_text()
    assert (rejected.count("c" * 32), rejected.count("d" * 32)) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["service", "postgresql"])
async def test_kills_neither_lose_nor_duplicate_rows(
    killed: str, new_postgresql: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_DEADLINE_SECONDS", "60")
    if killed == "service":
        monkeypatch.delenv("DATABASE_URL")
    async with service_process(tmp_path) as process:

        def kill() -> None:
            if killed == "service":
                process.stop(signal.SIGKILL)
                process.start()
            else:
                new_postgresql.stop()
                new_postgresql.start()

        storm = Storm(url=process.url, token=process.token, body=ASKED)
        await storm.through([kill] * 2, answers=12, chance=random.Random(8))
        process.stop(signal.SIGTERM)
    assert await missing_or_doubled(Settings.load(), storm.received) == (0, 0)


async def test_an_answer_that_cannot_be_recorded_is_withheld_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def full(self: AuditLog, rows: Sequence[Any]) -> None:
        raise StorageError("'waiting.jsonl' cannot be written (no space left on device).")

    async with running(tmp_path) as service:
        monkeypatch.setattr(AuditLog, "_write", full)
        refused = await service.ask()
        streamed = await service.client.post("/v1/ask/stream", json=ASKED)
    assert (refused.status_code, code_of(refused)) == (503, "unavailable")
    reported = events_of(streamed.text)
    assert [name for name, _ in reported][-2:] == ["error", "done"]
    assert "Oslo" not in streamed.text
    whys = [getattr(record, "fields", {}).get("why", "") for record in caplog.records if record.levelname == "ERROR"]
    assert len(whys) == 2
    assert all("no space left" in why for why in whys)


@pytest.mark.usefixtures("either_database")
async def test_old_records_lose_their_prompts_and_then_leave_the_database(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(data) as service:
        await service.ask()
        await service.ask(session="one")
        client = service.token.split("_")[1]
        await service.service.keys.revoke(client)
    settings = settings_in(data)
    async with open_database(settings) as engine:
        async with engine.begin() as connection:
            row = (await connection.execute(AUDIT.select())).first()
            assert row is not None
            await connection.execute(AUDIT.delete())
            ages = [400, 366, 364, 91, 89, 0]
            copies = [{**row._mapping, "query_id": f"{age:032d}", "at": NOW - timedelta(days=age)} for age in ages]
            await connection.execute(insert(AUDIT), copies)
        expected = {"slimmed": 2, "expired": 2, "sessions": 0}
        assert await prune(engine, settings, NOW, dry_run=True) == expected
        assert await prune(engine, settings, NOW) == expected
        rows = {int(row["query_id"]): row for row in await selected(engine)}
        assert [age for age, row in rows.items() if row["prompts"] is None] == [364, 91]
        assert rows[364]["answer"] == rows[0]["answer"]
        assert await prune(engine, settings, NOW) == {"slimmed": 0, "expired": 0, "sessions": 0}

    def run(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(app, ["audit", *words, "--json"])
        assert done.exit_code == 0, done.output
        return dict(json.loads(done.stdout))

    for other in ("", ".", "..", str(data), "0" * 12):
        refused = await asyncio.to_thread(CliRunner().invoke, app, ["audit", "forget", other, "--yes"])
        assert (refused.exit_code, data.is_dir()) == (2, True), refused.output
    for words, done in (((), False), (("--yes",), True)):
        found = await asyncio.to_thread(run, "forget", client, *words)
        assert found == {"client": client, "records": 4, "uploads": 0, "done": done}
    assert await rows_in(data) == []
    assert await service.service.sessions.names() == []

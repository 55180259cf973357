"""What a key may do, what it may spend, and how long a request may take."""

import asyncio
import json
import sqlite3
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from limits import RateLimitItemPerSecond
from sqlalchemy import update
from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from meta_agent_rag.errors import CorpusError, RequestError
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import HybridRetriever
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.retrieval.passage import Found
from meta_agent_rag.service.access import Keys, RateLimits, open_limits
from meta_agent_rag.service.audit import AuditLog
from meta_agent_rag.service.database import KEYS
from meta_agent_rag.testing import ScriptedModel
from tests.loop import EVIDENCE, QUESTION, WRONG, FakeRetriever, settings_in
from tests.service import ASKED, SCRIPT, bearer, code_of, running

TIMED_OUT = "Query processing timed out. Try a simpler question."


class Hanging(ScriptedModel):
    """A model that hangs in one stage."""

    stage: str = "write"
    cancelled: int = 0

    async def complete(self, request: Request) -> Reply:
        if request.stage == self.stage:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return await super().complete(request)


async def test_requests_without_a_valid_key_and_scope_are_rejected(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        id_ = service.token.split("_")[1]
        keys = ["", "sk-1", f"marag_{id_}_{'x' * 43}", f"marag_{'0' * 12}_{'x' * 43}", f"{service.token}x", "\xe9\xff"]
        for header in ("", "Basic abc", "Bearer", *(f"Bearer {key}" for key in keys)):
            raw = [(b"authorization", header.encode("latin-1"))]
            response = await service.client.post("/v1/ask", json=ASKED, headers=raw)
            assert response.status_code == 401, header
            assert code_of(response) in {"missing_key", "invalid_key"}
            assert response.headers["www-authenticate"] == "Bearer"
        ingests = await service.token_for("uploads", "ingest", "admin")
        response = await service.client.post("/v1/ask", json=ASKED, headers=bearer(ingests))
        assert (response.status_code, code_of(response)) == (403, "forbidden")
        token = await service.token_for("short", days=1)
        async with service.service.keys.engine.begin() as connection:
            past = update(KEYS).where(KEYS.c.id == token.split("_")[1])
            await connection.execute(past.values(expires=datetime.now(UTC) - timedelta(seconds=1)))
        await service.service.keys.revoke(id_)
        for key, state in ((token, "expired"), (service.token, "revoked")):
            refused = await service.client.post("/v1/ask", json=ASKED, headers=bearer(key))
            assert (refused.status_code, state in refused.text) == (401, True)
        assert service.model.requests == []


async def test_a_key_sees_only_its_corpora(tmp_path: Path) -> None:
    served = {name: FakeRetriever({QUESTION: EVIDENCE}) for name in ("films", "secret")}
    async with running(tmp_path, retrievers=served) as service:
        client = service.client
        bound = bearer(await service.token_for("bound", "ask", "ingest", "admin", corpora=["films", "elsewhere"]))
        assert [one["name"] for one in (await client.get("/v1/corpora", headers=bound)).json()["corpora"]] == ["films"]
        assert [one["id"] for one in (await client.get("/v1/models", headers=bound)).json()["data"]] == ["films"]
        assert (await client.post("/v1/ask", json={"question": QUESTION}, headers=bound)).json()["corpus"] == "films"
        for address, body in (
            ("/v1/ask", {**ASKED, "corpus": "secret"}),
            ("/v1/ask", {**ASKED, "corpus": "secret", "mode": "coach"}),
            ("/v1/chat/completions", {"model": "secret", "messages": [{"role": "user", "content": QUESTION}]}),
        ):
            refused = await client.post(address, json=body, headers=bound)
            assert refused.status_code == 404, address
            assert refused.json()["error"]["message"] == "The corpus 'secret' is not served; choose from: films."
        assert (await client.get("/v1/corpora/secret/documents", headers=bound)).status_code == 404
        files = {"files": ("a.txt", b"A text.")}
        assert (await client.post("/v1/documents?corpus=secret", files=files, headers=bound)).status_code == 404
        assert (await client.post("/v1/ask", json={**ASKED, "corpus": "secret"})).status_code == 200
        lost = bearer(await service.token_for("lost", corpora=["elsewhere"]))
        refused = await client.post("/v1/ask", json={"question": QUESTION}, headers=lost)
        assert (refused.status_code, code_of(refused)) == (403, "forbidden")


def test_the_database_is_private_whoever_creates_it(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["keys", "create", "site", "--corpus", "films", "--corpus", "plans"])
    assert made.exit_code == 0, made.output
    (listed,) = json.loads(CliRunner().invoke(app, ["keys", "list", "--json"]).stdout)
    assert listed["corpora"] == ["films", "plans"]
    refused = CliRunner().invoke(app, ["keys", "create", "site", "--corpus", "My Films"])
    assert (refused.exit_code, "not a valid corpus name" in refused.stderr) == (2, True)
    data = tmp_path / "data"
    with sqlite3.connect(data / "service.sqlite") as held:
        held.execute("SELECT 1 FROM service_keys").fetchone()
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in data.glob("service.sqlite*")}
    held.close()
    assert len(modes) == 3, "with the log files of SQLite"
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.parametrize("shared", [False, True])
async def test_no_window_exceeds_the_limit(shared: bool, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    assignments = [f"REDIS_URL={request.getfixturevalue('redis_url')}"] if shared else []
    admitted: list[tuple[float, float]] = []
    most = 5

    async def hammer(limits: RateLimits, until: float) -> None:
        while (before := time.time()) < until:
            if (await limits.admit("client", "ask"))[1] is None:
                admitted.append((before, time.time()))
            await asyncio.sleep(0.003)

    settings = settings_in(tmp_path, *assignments)
    async with open_limits(settings) as one, open_limits(settings) as other:
        services = [replace(limits, item=RateLimitItemPerSecond(most)) for limits in (one, other)[: 1 + shared]]
        await asyncio.gather(*(hammer(limits, time.time() + 1.3) for limits in services))
    admitted.sort()
    assert most < len(admitted) <= 2 * most
    for first, last in zip(admitted, admitted[most:], strict=False):
        assert last[1] - first[0] >= 1.0


async def test_without_redis_no_uncounted_request_is_admitted(tmp_path: Path) -> None:
    async with open_limits(settings_in(tmp_path, "REDIS_URL=redis://127.0.0.1:1")) as limits:
        with pytest.raises(RequestError, match="Rates cannot be counted"):
            await limits.admit("client", "ask")


async def test_a_key_cannot_exceed_its_daily_cost_cap(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        cost = (await service.ask()).json()["cost_usd"]
        poor = bearer(await service.token_for("poor", daily_usd=1.5 * cost))
        told = [await service.client.post("/v1/ask", json=ASKED, headers=poor) for _ in range(3)]
        assert [response.status_code for response in told] == [200, 200, 429]
        assert code_of(told[2]) == "daily_cost_cap"
        assert 0 < int(told[2].headers["retry-after"]) <= 86_400
    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=0.5", model=Hanging()) as service:
        poor = bearer(await service.token_for("poor", daily_usd=0.000001))
        late = [await service.client.post("/v1/ask", json=ASKED, headers=poor) for _ in range(2)]
        assert [code_of(response) for response in late] == ["timeout", "daily_cost_cap"], "calls cut off count"
    async with running(tmp_path, "FLASH_MODEL=unheard-of", "PRO_MODEL=unheard-of") as service:
        capped = bearer(await service.token_for("capped", daily_usd=1.0))
        assert code_of(await service.client.post("/v1/ask", json=ASKED, headers=capped)) == "unpriced_model"
        assert (await service.ask()).status_code == 200


@pytest.mark.parametrize("stage", ["write", "evaluate"])
async def test_no_unverified_answer_is_returned_after_the_deadline(stage: str, tmp_path: Path) -> None:
    expected = 200 if stage == "evaluate" else 504
    for seconds in (0.6, 2.0, 5.0):  # a busy machine takes longer to reach the hanging call; no answer may be late
        model = Hanging(script=WRONG, stage=stage)
        async with running(tmp_path, f"SERVICE_DEADLINE_SECONDS={seconds}", model=model) as service:
            started = time.monotonic()
            response = await service.ask()
            late = time.monotonic() - started - seconds
        if (response.status_code, model.cancelled) == (expected, 1) and late < 0.3:
            break
    assert (response.status_code, model.cancelled, late < 0.3) == (expected, 1, True)
    said = response.json()
    if stage == "evaluate":  # the draft was judged wrong and has no quote, so it is not shown
        assert said["refused"] == "invented_quotes"
    else:
        assert (code_of(response), said["error"]["message"]) == ("timeout", TIMED_OUT)


async def test_an_endless_body_and_a_late_stream_end_with_an_error_in_time(tmp_path: Path) -> None:
    async def endless() -> Any:
        yield b"{"
        await asyncio.sleep(30)

    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=0.3", model=Hanging()) as service:
        assert code_of(await service.client.post("/v1/ask", content=endless())) == "timeout"
        response = await service.client.post("/v1/ask/stream", json=ASKED)
        assert (response.status_code, TIMED_OUT in response.text) == (200, True)
        assert "event: answer" not in response.text
        assert response.text.endswith("event: done\ndata: {}\n\n")


@dataclass(frozen=True)
class _FailingIndex:
    """An index that is down or slow."""

    fault: Callable[[], Exception] | None = None

    async def search(self, *_: Any, **__: Any) -> list[Found]:
        if self.fault is not None:
            raise self.fault()
        await asyncio.sleep(30)
        return []


@pytest.mark.parametrize("down", [("dense",), ("lexical",), ("dense", "lexical")], ids="+".join)
async def test_one_index_down_or_slow_is_tolerated_and_reported(down: tuple[str, ...], tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with open_retriever(settings, encoder=AsyncEncoder(HashEncoder())) as hybrid:
        assert isinstance(hybrid, HybridRetriever)
        fault = None if down == ("lexical",) else lambda: CorpusError("The server does not answer.")
        broken: dict[str, Any] = {side: _FailingIndex(fault) for side in down}
        whole = hybrid.corpus.view

        async def view() -> Any:
            return replace(await whole(), **broken)

        hybrid.corpus.view = view  # type: ignore[method-assign]
        async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=2.5", retrievers={"films": hybrid}) as service:
            response, ready = await service.ask(), await service.client.get("/readyz")
    silent = [f"films: {side}" for side in down]
    if len(down) == 2:
        assert (response.status_code, code_of(response)) == (503, "search_unavailable")
        assert (ready.status_code, ready.json()["degraded"]) == (503, [*silent, "films: search"])
    else:
        assert (response.status_code, response.json()["degraded"]) == (200, [*down])
        assert (ready.status_code, ready.json()["degraded"]) == (200, silent)


async def test_readiness_asked_at_the_same_time_is_probed_once(tmp_path: Path) -> None:
    films = FakeRetriever({})
    async with running(tmp_path, retrievers={"films": films}) as service:
        ready = await asyncio.gather(*(service.client.get("/readyz") for _ in range(20)))
        assert {one.status_code for one in ready} == {200}
        assert len(films.asked) < 20
        assert (await service.client.get("/readyz")).json()["status"] == "ready"


async def test_requests_beyond_the_concurrency_limit_are_refused_at_once(tmp_path: Path) -> None:
    model = ScriptedModel(SCRIPT, seconds=0.2)
    async with running(tmp_path, "SERVICE_CONCURRENCY=2", model=model) as service:
        told = await asyncio.gather(*(service.ask() for _ in range(6)))
        assert sorted(one.status_code for one in told) == [200, 200, 503, 503, 503, 503]
        assert {one.headers.get("retry-after") for one in told if one.status_code == 503} == {"1"}
        assert (await service.ask()).status_code == 200, "slots are released"


async def test_requests_are_answered_in_time_while_the_database_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(*_: Any) -> Any:
        await asyncio.sleep(30)

    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=2.0") as service:
        capped = await service.token_for("capped", daily_usd=1.0)
        record = (await service.ask()).json()["query_id"]
        assert (await service.client.post("/v1/ask", json=ASKED, headers=bearer(capped))).status_code == 200
        for owner, name in ((Keys, "_selected"), (AuditLog, "spent"), (AuditLog, "read"), (AuditLog, "_inserted")):
            monkeypatch.setattr(owner, name, hangs)
        started = time.monotonic()
        stranger = f"marag_{'0' * 12}_{'x' * 43}"
        refused = await asyncio.gather(
            service.client.post("/v1/ask", json=ASKED, headers=bearer(stranger)),
            service.client.post("/v1/ask", json=ASKED, headers=bearer(capped)),
            service.client.get(f"/v1/queries/{record}"),
        )
        assert [(one.status_code, code_of(one)) for one in refused] == [(503, "unavailable")] * 3
        assert (await service.ask()).status_code == 200, "a known key is still served"
        assert time.monotonic() - started < 4.6
        waiting = service.service.audit.folder.glob("waiting*.jsonl")  # one of them may be being inserted
        rows = [row for file in waiting for row in file.read_text().splitlines()]
        assert len(rows) == 2, "a refusal of the capped key and one answer"

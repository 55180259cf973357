"""The deadline covers the whole request; the service survives one index being down, but not both."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from meta_agent_rag.errors import CorpusError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import HybridRetriever
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.retrieval.passage import Found
from meta_agent_rag.service.retention import latest
from meta_agent_rag.testing import ScriptedModel
from tests.loop import WRONG, draft, settings_in
from tests.service import ASKED, SCRIPT, bearer, code_of, running

TIMED_OUT = "Query processing timed out. Try a simpler question."


def slow_at(stage: str, seconds: float = 30.0) -> "_Hanging":
    """A model that hangs in one stage and otherwise repairs a wrong draft."""
    return _Hanging(script=WRONG, stage=stage, slow=seconds)


class _Hanging(ScriptedModel):
    stage: str = ""
    slow: float = 30.0
    cancelled: int = 0

    async def complete(self, request: Any) -> Any:
        if request.stage == self.stage:
            try:
                await asyncio.sleep(self.slow)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return await super().complete(request)


@pytest.mark.parametrize("stage", ["write", "second_answer", "evaluate"])
async def test_no_unverified_answer_is_returned_after_the_deadline(stage: str, tmp_path: Path) -> None:
    expected = 200 if stage == "evaluate" else 504
    for seconds in (0.6, 2.0, 5.0):  # a busy machine takes longer to reach the hanging call; no answer may be late
        model = slow_at(stage)
        async with running(tmp_path, f"SERVICE_DEADLINE_SECONDS={seconds}", model=model) as service:
            started = time.monotonic()
            response = await service.ask()
            late = time.monotonic() - started - seconds
        if (response.status_code, model.cancelled) == (expected, 1) and late < 0.3:
            break
    assert response.status_code == expected
    assert late < 0.3
    assert model.cancelled == 1, "the upstream call is cancelled too"
    said = response.json()
    if stage == "evaluate":  # the draft was judged wrong and has no quote, so it is not shown
        assert said["refused"] == "invented_quotes"
    else:
        assert (code_of(response), said["error"]["message"]) == ("timeout", TIMED_OUT)


async def test_a_round_that_cannot_finish_in_time_is_not_started(tmp_path: Path) -> None:
    model = ScriptedModel({**WRONG, "write": draft("Paris", quotes=["Mira Holt was born in Oslo."])}, seconds=0.3)
    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=2.0", model=model) as service:
        response = await service.ask()
        assert response.status_code == 200
        assert (response.json()["rounds"], response.json()["stop_reason"]) == (1, "deadline")
        assert not model.asked("rewrite"), "a round took 0.9 s, and less time was left"


async def test_an_endless_body_is_rejected_in_time(tmp_path: Path) -> None:
    async def endless() -> Any:
        yield b"{"
        await asyncio.sleep(30)

    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=0.3") as service:
        response = await service.client.post("/v1/ask", content=endless())
        assert code_of(response) == "timeout"


@dataclass(frozen=True)
class _FailingIndex:
    """An index that is down or slow."""

    fault: Callable[[], Exception] | None = None

    async def search(self, *_: Any, **__: Any) -> list[Found]:
        if self.fault is not None:
            raise self.fault()
        await asyncio.sleep(30)
        return []


async def _ask_with(folder: Path, *down: str, fault: Callable[[], Exception] | None) -> tuple[httpx.Response, Any]:
    settings = settings_in(folder)
    async with open_retriever(settings, encoder=AsyncEncoder(HashEncoder())) as hybrid:
        assert isinstance(hybrid, HybridRetriever)
        broken: dict[str, Any] = {side: _FailingIndex(fault) for side in down}
        whole = hybrid.corpus.view

        async def view() -> Any:
            return replace(await whole(), **broken)

        hybrid.corpus.view = view  # type: ignore[method-assign]
        retrievers = {"films": hybrid}
        async with running(folder, "SERVICE_DEADLINE_SECONDS=2.5", retrievers=retrievers) as service:
            started = time.monotonic()
            response = await service.client.post("/v1/ask", json=ASKED)
            assert time.monotonic() - started < 2.4
            return response, (await service.client.get("/readyz"))


@pytest.mark.parametrize("side", ["dense", "lexical"])
async def test_one_index_down_is_tolerated_and_reported(side: str, tmp_path: Path) -> None:
    response, ready = await _ask_with(tmp_path, side, fault=lambda: CorpusError("The server does not answer."))
    assert response.status_code == 200
    assert response.json()["degraded"] == [side]
    assert response.json()["rounds"] >= 1
    assert (ready.status_code, ready.json()["status"], ready.json()["degraded"]) == (200, "degraded", [side])


async def test_both_indexes_down_is_reported_at_once(tmp_path: Path) -> None:
    response, ready = await _ask_with(tmp_path, "dense", "lexical", fault=lambda: CorpusError("Down."))
    assert (response.status_code, code_of(response)) == (503, "search_unavailable")
    assert ready.status_code == 503


async def test_requests_beyond_the_concurrency_limit_are_refused_at_once(tmp_path: Path) -> None:
    model = ScriptedModel(SCRIPT, seconds=0.4)
    async with running(tmp_path, "SERVICE_CONCURRENCY=2", model=model) as service:
        started = time.monotonic()

        async def asked() -> tuple[int, float, str | None]:
            response = await service.ask()
            return response.status_code, time.monotonic() - started, response.headers.get("retry-after")

        outcomes = await asyncio.gather(*(asked() for _ in range(6)))
        refused = [outcome for outcome in outcomes if outcome[0] == 503]
        assert sorted(status for status, *_ in outcomes) == [200, 200, 503, 503, 503, 503]
        assert all(seconds < 0.2 and after == "1" for _, seconds, after in refused)
        assert (await service.ask()).status_code == 200, "slots are released"


async def test_a_stream_that_runs_out_of_time_ends_with_an_error_event(tmp_path: Path) -> None:
    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=0.5", model=slow_at("write")) as service:
        response = await service.client.post("/v1/ask/stream", json=ASKED, headers=bearer(service.token))
        assert response.status_code == 200
        assert TIMED_OUT in response.text
        assert "event: answer" not in response.text
        assert response.text.endswith("event: done\ndata: {}\n\n")


@pytest.mark.slow
async def test_hanging_calls_do_not_delay_responses_beyond_the_deadline(tmp_path: Path) -> None:
    chance = random.Random(3)
    model = _SometimesHanging(script=SCRIPT, seconds=0.05, hangs=lambda: chance.random() < 0.3)
    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=3.0", model=model) as service:

        async def asked() -> tuple[int, float]:
            started = time.monotonic()
            response = await service.ask()
            return response.status_code, time.monotonic() - started

        outcomes = await asyncio.gather(*(asked() for _ in range(16)))
        assert {status for status, _ in outcomes} == {200, 504}
        assert max(seconds for _, seconds in outcomes) < 3.5
        assert len(await latest(service.service.audit.engine, 100)) == 16


class _SometimesHanging(ScriptedModel):
    hangs: Callable[[], bool] = bool

    async def complete(self, request: Any) -> Any:
        await asyncio.sleep(30 if self.hangs() else 0)
        return await super().complete(request)

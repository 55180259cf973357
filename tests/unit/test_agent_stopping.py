"""Why the loop stops, and what is kept when it must."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.state import State
from meta_agent_rag.agent.stopping import out_of_time
from meta_agent_rag.errors import (
    AuthenticationError,
    BalanceError,
    ContextWindowError,
    CorpusError,
    CostLimitError,
    DeadlineError,
    ExtensionError,
    ModelError,
    RefusedError,
    UnreachableError,
)
from meta_agent_rag.llm.ledger import LedgerRow
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.testing import ScriptedModel
from tests.loop import FILM, QUESTION, WRONG, FakeRetriever, ask, critique, draft

TOWNS = ["Rome", "Lyon", "Graz", "Bonn", "Bern", "Kiel", "Turin", "Cork", "Nice", "Riga", "Vaduz", "Sofia", "Minsk"]
"""Short answers without a common word, which never converge."""


async def test_a_draft_confirmed_by_a_repair_is_not_diagnosed_again(tmp_path: Path) -> None:
    again = draft("paris", answer="It was there that her life began [1].")
    run = await ask(tmp_path, {**WRONG, "rewrite": [again, draft("Oslo")]})
    assert (run.answer.stop_reason, run.answer.short_answer) == ("upheld", "Paris")
    assert run.stages == ["write", "second_answer", "evaluate", "rewrite"], (
        "the second answer is unchanged: no model is called"
    )
    papers = await ask(tmp_path, {**WRONG, "rewrite": [again, draft("Oslo")]}, "SELECTION=last")
    assert (papers.answer.stop_reason, papers.answer.short_answer) == ("satisfied", "Oslo")


async def test_a_return_to_an_earlier_answer_oscillates(tmp_path: Path) -> None:
    run = await ask(tmp_path, {**WRONG, "rewrite": [draft("Rome"), draft("Paris"), draft("Lyon")]})
    assert run.answer.stop_reason == "oscillating"
    assert [round_.draft.short_answer for round_ in run.answer.rounds] == ["Paris", "Rome", "Paris"]


async def test_at_the_cost_limit_the_best_draft_so_far_is_returned(tmp_path: Path) -> None:
    script = {**WRONG, "rewrite": [draft(name) for name in TOWNS]}
    seen: set[tuple[str, bool]] = set()
    for step in range(12):
        limit = 0.0003 * 1.5**step
        model = ScriptedModel(script)
        try:
            run = await ask(tmp_path, script, f"COST_LIMIT_USD={limit:.6f}", model=model)
        except CostLimitError:
            assert model.requests == [], "only the first draft may fail"
            seen.add(("raised", False))
            continue
        assert run.answer.totals.paid_usd is not None
        assert float(run.answer.totals.paid_usd) <= limit
        assert len(run.answer.calls) == len(run.model.requests), "a call that is not made leaves no ledger row"
        assert run.answer.short_answer
        seen.add((run.answer.stop_reason, run.answer.fired))
    assert seen == {("raised", False), ("cost_limit", False), ("cost_limit", True), ("max_rounds", True)}


class SlowStage(ScriptedModel):
    """Is slow in one stage."""

    async def complete(self, request: Request) -> Reply:
        if request.stage == "rewrite":
            await asyncio.sleep(60)
        return await super().complete(request)


async def test_the_deadline_interrupts_a_later_draft(tmp_path: Path) -> None:
    started = time.monotonic()
    run = await ask(tmp_path, {}, model=SlowStage(script=WRONG), deadline=started + 1.0)
    assert time.monotonic() - started < 10
    assert (run.answer.stop_reason, run.answer.short_answer) == ("deadline", "Paris")
    assert run.answer.calls[-1].error == "timeout"


async def test_no_first_draft_is_written_after_the_deadline(tmp_path: Path) -> None:
    model = ScriptedModel(WRONG)
    with pytest.raises(DeadlineError):
        await ask(tmp_path, {}, model=model, deadline=time.monotonic() - 1)
    assert model.requests == []


class SlowRetriever(FakeRetriever):
    """Is slow, or fails."""

    fault: BaseException | None = None

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        if self.fault is not None:
            raise self.fault
        await asyncio.sleep(60)
        return Retrieval()


async def test_the_first_search_ends_at_the_deadline(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(DeadlineError, match="The first search took until the deadline"):
        await ask(tmp_path, {}, retriever=SlowRetriever(results={}), deadline=started + 0.3)
    assert time.monotonic() - started < 10
    failing = SlowRetriever(results={})
    failing.fault = TimeoutError("the server's own")
    with pytest.raises(ExtensionError, match=r"The retriever 'SlowRetriever' failed .*the server's own"):
        await ask(tmp_path, {}, retriever=failing, deadline=time.monotonic() + 60)


def test_calls_at_the_same_time_take_their_time_once() -> None:
    def call(second: int) -> LedgerRow:
        at = datetime(2026, 1, 1, second=second, tzinfo=UTC)
        return LedgerRow(at=at, stage="route", tier="flash", provider="p", model="m", request="r", latency_s=3.0)

    def late(*seconds: int) -> bool:
        context: Any = SimpleNamespace(model=SimpleNamespace(rows=[call(second) for second in seconds]))
        context.deadline = time.monotonic() + 5.0
        return out_of_time(State(question="?"), context, 0) == "deadline"

    assert (late(0, 0, 0), late(0, 1), late(0, 3), late(0, 20)) == (False, False, True, True)


@pytest.mark.parametrize("error", [CostLimitError("spent"), DeadlineError("late")])
@pytest.mark.parametrize("stage", ["second_answer", "evaluate", "rewrite"])
async def test_the_first_draft_is_kept_if_the_budget_then_runs_out(
    tmp_path: Path, stage: str, error: CostLimitError | DeadlineError
) -> None:
    run = await ask(tmp_path, {**WRONG, stage: error})
    assert run.answer.stop_reason == error.stop_reason
    assert run.answer.short_answer == "Paris"
    (only,) = run.answer.rounds
    assert (only.signals is None) == (stage == "second_answer")
    assert (only.diagnosis is None) == (stage in {"second_answer", "evaluate"})
    if stage in {"second_answer", "evaluate"}:
        assert only.calls == len(run.answer.calls), "the failed call counts"


class FailingRetriever(FakeRetriever):
    """Finds something for the question, then fails on every later query."""

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        if self.asked:
            raise CorpusError("Neither index answers.")
        return await super().retrieve(queries, k=k, exclude=exclude)


async def test_a_failed_follow_up_search_keeps_the_draft(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = {**WRONG, "evaluate": critique("insufficient_knowledge", queries=["Mira Holt birthplace"])}
    run = await ask(tmp_path, script, retriever=FailingRetriever(results={QUESTION: [FILM]}))
    assert (run.answer.stop_reason, run.answer.short_answer, run.answer.fired) == ("search_failed", "Paris", False)
    assert "Neither index answers." in caplog.text
    with pytest.raises(CorpusError):
        await ask(tmp_path, script, retriever=FailingRetriever(results={}, asked=[((), 0, frozenset())]))


@pytest.mark.parametrize("failure", ["prose", RefusedError("no"), ContextWindowError("long")])
async def test_a_failed_rewrite_keeps_the_drafts(tmp_path: Path, failure: str | ModelError) -> None:
    run = await ask(tmp_path, {**WRONG, "rewrite": [draft("Rome"), failure]})
    assert run.answer.stop_reason == "write_failed"
    assert [round_.draft.short_answer for round_ in run.answer.rounds] == ["Paris", "Rome"]
    assert run.answer.short_answer in {"Paris", "Rome"}
    beyond = [row for row in run.answer.calls if row.round == 2]
    assert {row.stage for row in beyond} == {"rewrite"}
    assert sum(round_.calls for round_ in run.answer.rounds) + len(beyond) == len(run.answer.calls)


@pytest.mark.parametrize("stage", ["write", "second_answer", "evaluate", "rewrite"])
@pytest.mark.parametrize("error", [AuthenticationError("refused key"), BalanceError("empty")])
async def test_a_rejected_key_or_an_empty_account_always_raises(tmp_path: Path, stage: str, error: ModelError) -> None:
    with pytest.raises(type(error), match=str(error)):
        await ask(tmp_path, {**WRONG, stage: error})


@pytest.mark.parametrize(
    "failure",
    ["prose", '{"deficit": "no_such"}', RefusedError("no"), ContextWindowError("long"), UnreachableError("g")],
)
async def test_the_rules_diagnose_if_the_critic_fails(tmp_path: Path, failure: str | ModelError) -> None:
    run = await ask(tmp_path, {**WRONG, "evaluate": failure}, "LLM_MAX_RETRIES=0")
    diagnosis = run.answer.rounds[0].diagnosis
    assert diagnosis is not None
    assert diagnosis.source == "heuristic"
    assert diagnosis.critic_error
    expected = discover_deficits().guess(run.answer.rounds[0].signals)
    assert diagnosis.deficit == expected.name == "external_only", "the draft quoted nothing"
    assert diagnosis.suggested_queries == ()
    assert run.answer.rounds[1].plan is not None
    assert run.answer.rounds[1].plan.deficit == "external_only"
    assert run.stages.count("evaluate") == (2 if isinstance(failure, str) else 1), "a malformed reply is retried once"

"""The model client: concurrency, ledger rows and reservations, whatever the chat model does."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.prompting import PlainReply
from meta_agent_rag.errors import (
    DeadlineError,
    LostConnectionError,
    ModelError,
    RefusedError,
    StorageError,
    StructuredOutputError,
)
from meta_agent_rag.llm.budget import Budget, unsettled
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.connections import Connections
from meta_agent_rag.llm.ledger import LedgerRow
from meta_agent_rag.llm.messages import Message, Reply, Request, Usage
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel

ASK = (Message(role="user", content="Who wrote Faust?"),)


class CountingModel(ScriptedModel):
    """A slow model that counts its calls, and may fail."""

    seconds: float = 0.01
    fault: Any = None
    calls: int = 0

    async def complete(self, request: Request) -> Reply:
        """Reply after a delay."""
        self.calls += 1
        await asyncio.sleep(self.seconds)
        if self.fault is not None:
            raise self.fault
        return Reply(text="Goethe", usage=Usage(prompt=10, completion=2))


class Replies(ScriptedModel):
    """A model that gives these replies, in order."""

    replies: list[Reply]

    async def complete(self, request: Request) -> Reply:
        """The next reply."""
        return self.replies.pop(0)


def model_of(scripted: ScriptedModel, *, limit: str | None = None, provider: str = "groq", **own: Any) -> LanguageModel:
    settings = Settings.load(llm_provider=provider, groq_api_key="k", deepseek_api_key="k", **own)
    budget = Budget(limit_usd=None if limit is None else Decimal(limit))
    return LanguageModel(
        settings=settings,
        choice=choose_provider(settings),
        connections=Connections(settings=settings, stand_in=scripted),
        budget=budget,
    )


async def test_the_deadline_ends_the_wait_for_a_slot() -> None:
    scripted = CountingModel(seconds=30.0)
    model = model_of(scripted)
    slots = model.choice.provider.concurrency["flash"]
    busy = [asyncio.create_task(model.session().areply("write", ASK)) for _ in range(slots)]
    await asyncio.sleep(0.01)
    session = model.session(deadline=time.monotonic() + 0.1)
    with pytest.raises(DeadlineError):
        await asyncio.wait_for(session.areply("write", ASK), 5)
    assert session.rows == []
    assert scripted.calls == slots
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    scripted.seconds = 0.0
    assert (await session.owner.session().areply("write", ASK)).text == "Goethe"  # no slot was lost


async def test_the_deadline_ends_the_wait_for_reserved_budget() -> None:
    scripted = CountingModel(seconds=30.0)
    at_peak = datetime(2026, 11, 3, 2, 0, tzinfo=UTC)
    model = replace(model_of(scripted, limit="0.001", provider="deepseek"), clock=lambda: at_peak)
    busy = asyncio.create_task(model.session().areply("write", ASK))
    await asyncio.sleep(0.01)
    session = model.session(deadline=time.monotonic() + 0.1)
    with pytest.raises(DeadlineError):
        await asyncio.wait_for(session.areply("write", ASK), 5)
    assert (scripted.calls, session.rows) == (1, [])
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)
    assert model.budget.reserved_usd == 0


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (RefusedError("no"), RefusedError),
        (ZeroDivisionError("unforeseen"), ModelError),
        (ConnectionResetError(), LostConnectionError),
    ],
)
async def test_a_failed_call_releases_its_slot_and_writes_a_row(fault: Exception, kind: type[ModelError]) -> None:
    scripted = CountingModel(seconds=0.0, fault=fault)
    model = model_of(scripted, limit="1", provider="deepseek", llm_max_retries=0)
    session = model.session()
    with pytest.raises(kind):
        await session.areply("write", ASK)
    assert [row.error for row in session.rows] == [kind.__name__]
    assert model.budget.reserved_usd == 0
    assert (model.budget.paid_usd > 0) == (not isinstance(fault, RefusedError))
    assert not model.gate(model.choice.tiers["flash"]).locked()


async def test_a_call_cancelled_while_waiting_is_never_made() -> None:
    scripted = CountingModel(seconds=30.0)
    model, rows = model_of(scripted, limit="1"), list[LedgerRow]()
    model.ledger.listeners.append(rows.append)
    slots = model.choice.provider.concurrency["flash"]
    tasks = [asyncio.create_task(model.session(str(n)).areply("write", ASK)) for n in range(slots + 1)]
    await asyncio.sleep(0.05)
    reserved = model.budget.reserved_usd
    tasks[-1].cancel()
    await asyncio.gather(tasks[-1], return_exceptions=True)
    assert rows == []
    assert model.budget.reserved_usd == reserved > 0
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [row.error for row in rows] == ["cancelled"] * slots
    assert model.budget.reserved_usd == 0


def full(_row: LedgerRow) -> None:
    raise StorageError("The disk is full.")


async def test_a_failed_ledger_write_still_settles_the_reservation() -> None:
    model = model_of(CountingModel(), limit="1")
    model.ledger.listeners.append(full)
    with pytest.raises(StorageError):
        await model.session("one").areply("write", ASK)
    assert model.budget.reserved_usd == 0
    assert model.budget.paid_usd > 0, "the unknown cost of the reply counts as paid"


async def test_a_call_whose_row_is_lost_counts_in_the_resumed_run(tmp_path: Path) -> None:
    journal = tmp_path / "reservations.jsonl"
    model = replace(model_of(CountingModel()), budget=Budget.under(1.0, journal=journal))
    await model.session("written").areply("write", ASK)
    assert unsettled(journal) == 0
    model.ledger.listeners.append(full)
    with pytest.raises(StorageError):
        await model.session("lost").areply("write", ASK)
    assert unsettled(journal) > 0
    await model.aclose()
    assert unsettled(journal) > 0


async def test_a_run_keeps_unusable_replies_until_it_forgets_them(tmp_path: Path) -> None:
    settings = Settings.load([f"MARAG_DATA_DIR={tmp_path}", "LLM_PROVIDER=groq", "GROQ_API_KEY=k"])
    prose = Reply(text="It is Goethe.", usage=None)
    async with open_language_model(settings, model=Replies(replies=[prose, prose])) as model:
        unusable: dict[tuple[str, str], list[str]] = {}
        for _ in range(2):  # the second time without a call: a resumed run pays for neither reply again
            session = replace(model, unusable=unusable).session("q1", method="metarag")
            with pytest.raises(StructuredOutputError):
                await session.ainvoke("route", ASK, PlainReply)
        assert model.cache is not None
        model.cache.drop(*unusable["q1", "metarag"])
    reply = Reply(text='{"answer": "He did.", "short_answer": "Goethe"}', usage=None)
    async with open_language_model(settings, model=Replies(replies=[reply])) as model:
        assert (await model.session().ainvoke("route", ASK, PlainReply)).short_answer == "Goethe"

"""What the demo's visitors share: questions, one engine, and a spending cap per visitor."""

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from meta_agent_rag.demo.app import heading
from meta_agent_rag.demo.cards import stages
from meta_agent_rag.demo.tabs.loop import Setup, Visit, wait_and_cap
from meta_agent_rag.demo.workbench import (
    VisitorBudget,
    Workbench,
    open_workbench,
    packaged_questions,
)
from meta_agent_rag.errors import CostLimitError
from meta_agent_rag.llm.budget import Budget
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in
from tests.story import QUESTION, QUESTION_ID, STORY


class TestQuestions:
    def test_the_packaged_sets_come_with_paragraphs_and_licences(self) -> None:
        found = {one.name: one for one in packaged_questions()}
        assert list(found) == ["2WikiMultiHopQA", "HotpotQA", "sample"]
        question = found["sample"].get(QUESTION_ID)
        assert question is not None
        assert question.text == QUESTION
        for name in ("2WikiMultiHopQA", "HotpotQA"):
            assert name in found[name].licence
            assert all(one.golds and len(one.paragraphs) >= 2 for one in found[name].questions)


class TestWorkbench:
    async def test_visitors_share_an_engine_and_not_a_budget(self, tmp_path: Path) -> None:
        model = ScriptedModel(STORY)
        encoder = AsyncEncoder(HashEncoder())
        async with open_workbench(settings_in(tmp_path), model=model, monitor_encoder=encoder) as bench:
            first, second = await asyncio.gather(bench.engine("one"), bench.engine("two"))
            assert first.graph is second.graph
            assert first.model.ledger is second.model.ledger
            assert first.model.budget is not second.model.budget
            assert (await bench.engine("one")).model.budget is first.model.budget
            assert first.model.budget.limit_usd == Decimal("0.25")
            assert "more than $0.25" in wait_and_cap(bench)
            bench.forget("one")
            assert (await bench.engine("one")).model.budget is not first.model.budget

    def test_the_page_opens_without_a_provider(self, tmp_path: Path) -> None:
        lost = Settings.load(["LLM_PROVIDER=compatible", f"MARAG_DATA_DIR={tmp_path}"])
        assert wait_and_cap(Workbench(settings=lost)) == ""

    async def test_a_visit_reports_why_it_cannot_start(self, tmp_path: Path) -> None:
        bench = Workbench(settings=Settings.load(["LLM_PROVIDER=compatible", f"MARAG_DATA_DIR={tmp_path}"]))
        visit, setup = Visit(), Setup(text=QUESTION, chosen=None, from_corpus=False, policy="vote", repairs=1)
        await visit.go(bench, "one", setup, steps=False, show=lambda: None)
        assert visit.fault.startswith("LLM_PROVIDER is 'compatible'")


async def test_a_visitor_sees_no_address_of_the_model_server(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "LLM_BASE_URL=http://127.0.0.1:9/v1", "FLASH_MODEL=tiny", "LLM_MAX_RETRIES=0")
    async with open_workbench(settings, monitor_encoder=AsyncEncoder(HashEncoder())) as bench:
        assert "answered by tiny and deepseek-v4-pro;" in heading(bench)
        _, question = bench.first_question()
        visit, setup = Visit(), Setup(text=question.text, chosen=question, from_corpus=False, policy="vote", repairs=1)
        await visit.go(bench, "one", setup, steps=False, show=lambda: None)
        assert visit.run is not None
        shown = visit.run.view.fault
        assert "does not respond; check that it is running" in shown
        assert "127.0.0.1" not in shown + "".join(stages(visit.run.view, settings)) + heading(bench)


async def test_a_call_reserves_from_the_visitors_and_the_shared_budget() -> None:
    whole = Budget(limit_usd=Decimal("0.5"))
    visitor = VisitorBudget(limit_usd=Decimal("0.3"), whole=whole)
    other = VisitorBudget(limit_usd=Decimal("0.3"), whole=whole)
    reserved = await visitor.acquire(Decimal("0.2"), model="m")
    visitor.settle(reserved, Decimal("0.2"))
    assert (visitor.paid_usd, whole.paid_usd, whole.reserved_usd) == (Decimal("0.2"), Decimal("0.2"), Decimal(0))
    with pytest.raises(CostLimitError, match=r"limit of 0\.3 USD"):
        await visitor.acquire(Decimal("0.2"), model="m")
    other.settle(await other.acquire(Decimal("0.25"), model="m"), Decimal("0.25"))
    with pytest.raises(CostLimitError, match=r"limit of 0\.5 USD"):
        await VisitorBudget(limit_usd=Decimal("0.3"), whole=whole).acquire(Decimal("0.1"), model="m")
    assert whole.reserved_usd == 0

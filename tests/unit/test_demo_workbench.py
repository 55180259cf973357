"""What the demo's visitors share: questions, one engine, and a spending cap per visitor."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from pydantic import SecretStr

from meta_agent_rag.datasets import Question
from meta_agent_rag.demo.app import heading
from meta_agent_rag.demo.cards import stages
from meta_agent_rag.demo.own_model import OwnModel
from meta_agent_rag.demo.stepping import LoopView
from meta_agent_rag.demo.tabs.loop import Loop, Setup, Visit, wait_and_cap
from meta_agent_rag.demo.tabs.own_model import OwnModelPanel
from meta_agent_rag.demo.tabs.tab import Updates
from meta_agent_rag.demo.workbench import VisitorBudget, Workbench, open_workbench, packaged_questions
from meta_agent_rag.errors import CostLimitError, InputError
from meta_agent_rag.llm.budget import Budget
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import Scripted, ScriptedModel
from meta_agent_rag.testing.server import ServerReply, always, loopback_server, quoting
from tests.loop import draft, settings_in
from tests.story import QUESTION, QUESTION_ID, STORY


class TestQuestions:
    def test_the_packaged_sets_come_with_paragraphs_and_licences(self) -> None:
        found = {one.name: one for one in packaged_questions()}
        assert list(found) == ["2WikiMultiHopQA", "HotpotQA", "sample", "conflicting sources"]
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
            await bench.forget("one")
            assert (await bench.engine("one")).model.budget is first.model.budget
            await bench.left("one")
            assert (await bench.engine("one")).model.budget is not first.model.budget

    def test_the_page_opens_without_a_provider(self, tmp_path: Path) -> None:
        lost = Settings.load(["LLM_PROVIDER=compatible", f"MARAG_DATA_DIR={tmp_path}"])
        assert wait_and_cap(Workbench(settings=lost)) == ""

    async def test_a_visit_reports_why_it_cannot_start(self, tmp_path: Path) -> None:
        bench = Workbench(settings=Settings.load(["LLM_PROVIDER=compatible", f"MARAG_DATA_DIR={tmp_path}"]))
        visit, setup = Visit(), Setup(text=QUESTION, chosen=None, from_corpus=False, policy="vote", repairs=1)
        await visit.go(bench, "one", setup, steps=False, show=lambda: None)
        assert visit.fault.startswith("LLM_PROVIDER is 'compatible'")


async def viewed(bench: Workbench, question: Question, **options: Any) -> LoopView:
    """What a visitor sees after a whole run of a question."""
    visit = Visit()
    given: dict[str, Any] = {"from_corpus": False, "policy": "vote", "repairs": 1, **options}
    await visit.go(bench, "one", Setup(text=question.text, chosen=question, **given), steps=False, show=lambda: None)
    assert visit.run is not None
    return visit.run.view


async def test_a_visitor_sees_no_address_of_the_model_server(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "LLM_BASE_URL=http://127.0.0.1:9/v1", "FLASH_MODEL=tiny", "LLM_MAX_RETRIES=0")
    async with open_workbench(settings, monitor_encoder=AsyncEncoder(HashEncoder())) as bench:
        assert "answered by tiny and deepseek-v4-pro;" in heading(bench)
        _, question = bench.first_question()
        view = await viewed(bench, question)
        assert "does not respond; check that it is running" in view.fault
        assert "127.0.0.1" not in view.fault + "".join(stages(view, settings)) + heading(bench)


async def test_a_question_about_which_sources_differ_has_the_deficit_for_it(tmp_path: Path) -> None:
    script: Mapping[str, Scripted] = {
        "write": draft("1931", answer="It is 1931 [1]."),
        "plan": {"chains": []},
        "look_up": "1931",
        "route": {"steps": [], "rationale": "", "answer": "1931", "short_answer": "1931"},
    }
    model, encoder = ScriptedModel(script), AsyncEncoder(HashEncoder())
    async with open_workbench(settings_in(tmp_path), model=model, monitor_encoder=encoder) as bench:
        found = bench.found("conflict-01")
        assert found is not None
        one, question = found
        view = await viewed(bench, question, deficits_dir=one.deficits_dir)
        assert "Conflicting sources" in stages(view, bench.settings)
        assert view.answer is not None
        assert view.answer.short_answer in question.golds


@pytest.mark.parametrize(
    ("address", "allowed", "fault"),
    [
        ("https://127.0.0.1:9/v1", "public", "private network"),
        ("https://[::ffff:10.0.0.1]/v1", "public", "private network"),
        ("https://169.254.169.254/latest", "public", "private network"),
        ("https://localhost/v1", "public", "private network"),
        ("http://1.1.1.1/v1", "public", "begins with https"),
        ("file:///etc/passwd", "any", "begins with https"),
        ("https://[", "any", "begins with https"),
        (f"https://{'a' * 70}.com/v1", "public", "begins with https"),
        ("https://a\tb.com/v1", "any", "begins with https"),
        ("https://[64:ff9b::7f00:1]/v1", "public", "private network"),
        ("https://[2002:7f00:1::]/v1", "public", "private network"),
    ],
)
async def test_a_visitors_model_must_be_at_an_allowed_address(address: str, allowed: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        await OwnModel(base_url=address, model="m", key=SecretStr("")).check(allowed)


async def test_no_private_address_is_connected_to_even_after_the_check() -> None:
    with loopback_server(always(ServerReply())) as server:
        own = OwnModel(base_url=server.base_url, model="m", key=SecretStr("sk-secret"))
        async with own.opened("public") as model:
            with pytest.raises(InputError, match="private network"):
                await model.ainvoke("Hello?")
    assert not server.bodies


@pytest.mark.parametrize(
    "reply",
    [ServerReply(text="x" * 33 * 1024 * 1024), ServerReply(body={"choices": []}, headers={"content-encoding": "gzip"})],
    ids=["endless", "packed"],
)
async def test_a_visitors_server_cannot_fill_the_demos_memory(reply: ServerReply) -> None:
    with loopback_server(always(reply)) as server:
        async with OwnModel(base_url=server.base_url, model="m", key=SecretStr("")).opened("any") as model:
            with pytest.raises(openai.APIConnectionError):
                await model.ainvoke("Hello?")


async def test_a_visitors_server_learns_nothing_of_the_operators_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "of-the-operator")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-gateway: of-the-operator")
    monkeypatch.setenv("OPENAI_PROXY", "http://127.0.0.1:9")
    with loopback_server(always(ServerReply())) as server:
        async with OwnModel(base_url=server.base_url, model="m", key=SecretStr("")).opened("any") as model:
            await model.ainvoke("Hello?")
    assert server.headers
    assert "of-the-operator" not in str(server.headers)


async def test_what_asks_a_visitors_model_ends_before_it_is_closed(tmp_path: Path) -> None:
    settings, encoder = settings_in(tmp_path, "DEMO_OWN_MODELS=any"), AsyncEncoder(HashEncoder())
    with loopback_server(always(ServerReply(seconds=60))) as server:
        async with open_workbench(settings, model=ScriptedModel(STORY), monitor_encoder=encoder) as bench:
            loop = Loop(workbench=bench)
            panel, request = OwnModelPanel(workbench=bench, others=[loop]), _page("one")
            told = [news async for news in panel.use(request, server.base_url, "mine", "sk-secret")]
            assert "your mine" in told[-1]["told"]
            _, question = bench.first_question()
            asked = question.id, question.text, "paragraphs", "vote", 0
            going = asyncio.create_task(_last(loop.go(False, request, *asked)))
            while not server.bodies:  # noqa: ASYNC110  # of another thread
                await asyncio.sleep(0.01)
            await panel.forget(request)
            assert "Stopped" in (await going)["status"]
            assert "Done" in (await _last(loop.go(False, request, *asked)))["status"]


def _page(visitor: str) -> Any:
    return SimpleNamespace(session_hash=visitor)


async def _last(updates: AsyncIterator[Updates]) -> Updates:
    return [news async for news in updates if "status" in news][-1]


async def test_a_visitors_key_answers_their_questions_alone_and_is_not_kept(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "DEMO_OWN_MODELS=any")
    encoder, key = AsyncEncoder(HashEncoder()), "sk-own-secret"
    with loopback_server(quoting()) as server:
        async with open_workbench(settings, model=ScriptedModel(STORY), monitor_encoder=encoder) as bench:
            await bench.bring("one", OwnModel(base_url=server.base_url, model="mine", key=SecretStr(key)))
            _, question = bench.first_question()
            view = await viewed(bench, question, repairs=0)
            assert view.status == "done", view.fault
            assert len(server.bodies) == len(view.rows) > 0
            assert (await bench.engine("two")).model is not (await bench.engine("one")).model
            kept = [path for folder in (tmp_path, bench.uploads) for path in folder.rglob("*") if path.is_file()]
            assert kept
            assert not [path for path in kept if key.encode() in path.read_bytes()]
            await bench.forget("one")
            assert (await bench.engine("one")).model.ledger is (await bench.engine("two")).model.ledger


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

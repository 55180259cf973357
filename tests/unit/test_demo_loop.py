"""The Loop tab without a browser: runs through the graph, and their display."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.derivation import Chain, Derivation, Fact, Plan
from meta_agent_rag.agent.engine import Engine, open_engine
from meta_agent_rag.agent.routes import Ballot, Vote
from meta_agent_rag.agent.state import (
    Diagnosis,
    Draft,
    Packing,
    RepairPlan,
    Round,
    SecondAnswer,
    Signals,
    State,
    StopReason,
)
from meta_agent_rag.demo.cards import cards, doubtful, html, monitoring, outcome, timeline
from meta_agent_rag.demo.stepping import LoopStepper, LoopView
from meta_agent_rag.demo.vocabulary import STOP_REASONS
from meta_agent_rag.demo.workbench import packaged_questions
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Found, passages_of
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.testing.scripted import Line
from tests.loop import BIRTH, BIRTH_SENTENCE, settings_in
from tests.story import QUESTION, QUESTION_ID, RIGHT, STORY, WRONG

MARKUP = "<script>alert('x')</script>"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(STORY)


@pytest.fixture
async def engine(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Engine]:
    settings = settings_in(tmp_path, "RETRIEVAL_TOP_K=1")
    async with open_engine(settings, model=model, monitor_encoder=AsyncEncoder(HashEncoder())) as opened:
        yield opened


def begin(engine: Engine) -> LoopStepper:
    question = packaged_questions()[2].get(QUESTION_ID)
    assert question is not None
    return LoopStepper.begin(engine, Task(question=QUESTION, evidence=passages_of(question.paragraphs)))


def ignore() -> None:
    """Discard the update."""


class TestRun:
    async def test_a_wrong_answer_never_looks_like_success(self, engine: Engine) -> None:
        run = begin(engine)
        await run.advance(ignore, steps=False)
        answer = run.view.answer
        assert answer is not None
        assert answer.short_answer == RIGHT
        assert "Repaired: the first draft was wrong" in outcome(answer, (RIGHT,))
        assert doubtful(answer, (WRONG,))
        assert not doubtful(answer, (RIGHT,))

    async def test_only_a_stopped_call_is_repeated(self, engine: Engine, model: ScriptedModel) -> None:
        run = begin(engine)
        await run.advance(ignore, steps=True)
        asked = asyncio.Event()

        def asking(_: Request) -> Line:
            asked.set()
            return "never said"

        model.script = {**STORY, "write": asking}
        model.seconds = 60.0
        task = asyncio.create_task(run.advance(ignore, steps=False))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (run.view.status, run.view.node) == ("stopped", "write")
        model.script, model.seconds = STORY, 0.0
        await run.advance(ignore, steps=False)
        assert run.view.status == "done"
        assert [request.stage for request in model.requests][:3] == ["write", "write", "second_answer"]
        assert "1 failed call" in timeline(run.view)


def round_(**changes: Any) -> Round:
    signals = Signals(similarity=0.3, agreement=False, verbatim=0.5, abstained=False, evidence_passages=1, overlap=0.0)
    whole = Round(
        index=0,
        draft=Draft(answer=MARKUP, short_answer=MARKUP, quotes=(BIRTH_SENTENCE, MARKUP)),
        packing=Packing(packed_ids=(BIRTH.id,)),
        evidence_ids=(BIRTH.id,),
        plan=RepairPlan(
            deficit="reasoning_error", directive=MARKUP, answer_mode="evidence", suggestion=MARKUP, queries=(MARKUP,)
        ),
        second_answer=SecondAnswer(short_answer=MARKUP, steps=(MARKUP,), packed_ids=(BIRTH.id,)),
        signals=signals,
        diagnosis=Diagnosis(
            deficit="reasoning_error",
            rationale=MARKUP,
            error_type=MARKUP,
            suggestion=MARKUP,
            suggested_queries=(MARKUP,),
            source="heuristic",
            critic_error=MARKUP,
        ),
    )
    return replace(whole, **changes)


PLAN = Plan(
    operator="earliest",
    chains=(
        Chain(of="Blue Hill", facts=("Who directed Blue Hill?", "When did # die?")),
        Chain(of="Grey Water", facts=("Who directed Grey Water?", "When did # die?")),
    ),
)


def fact(place: int, index: int, value: str, **fields: object) -> Fact:
    known: dict[str, object] = {"passage_id": "blue-hill-0123456789ab", "sentence": f"It is by {MARKUP}.", **fields}
    return Fact(chain=place, index=index, asked=f"Fact {place}.{index}?", entity="", value=value, **known)  # type: ignore[arg-type]


DERIVATION = Derivation(
    plan=PLAN,
    facts=(
        fact(0, 0, MARKUP),
        fact(0, 1, "1990", passage_id=None, from_memory=True),
        fact(1, 0, "", open="no passage gives it"),
    ),
    answer="Grey Water",
    because="1981 is earlier than 1990: Grey Water",
)
VOTE = Vote(
    elected="Grey Water",
    route="derivation",
    share=0.6,
    ballots=(Ballot(route="quoted_draft", short_answer=MARKUP), Ballot(route="derivation", short_answer="Grey Water")),
    support=(0.4, 0.6),
)


class TestDisplay:
    def test_text_from_documents_and_models_never_becomes_markup(self) -> None:
        hostile = replace(BIRTH, title=MARKUP, text=f"{BIRTH_SENTENCE} {MARKUP}")
        evidence = (Found(passage=hostile, score=1.0, via=MARKUP, suspect=(MARKUP,)),)
        voted = round_(index=1, derivation=DERIVATION, vote=VOTE)
        state = State(evidence=evidence, rounds=(round_(), voted))
        view = LoopView(state=state, status="done")
        shown = "".join(cards(view, Settings.load()))
        assert "<script" not in shown
        assert f"<mark>{BIRTH_SENTENCE[:-1]}</mark>" in shown
        assert shown.count("&lt;script&gt;") > 10

    def test_facts_and_votes_are_shown(self) -> None:
        shown = monitoring(round_(derivation=DERIVATION, vote=VOTE), Settings.load(), {})
        assert "1981 is earlier than 1990: Grey Water" in shown
        assert "from the model&#39;s memory" in shown
        assert "derivation: Grey Water</span><span>60%" in shown
        assert "Similarity of the draft to the elected answer: 0.00, threshold 1.00" in shown
        none = Derivation(plan=None, dropped="it restates <the> question")
        assert "it restates &lt;the&gt; question" in html("derived", none, {})


def test_every_stop_reason_has_a_sentence() -> None:
    assert set(STOP_REASONS) == set(get_args(StopReason))

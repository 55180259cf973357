"""The Loop tab without a browser: walks through the graph, and their display."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.engine import Engine, open_engine
from meta_agent_rag.agent.graph import build_graph
from meta_agent_rag.agent.state import Diagnosis, Draft, Packing, RepairPlan, Round, SecondAnswer, Signals, StopReason
from meta_agent_rag.demo.cards import (
    difference,
    monitoring,
    outcome,
    round_cards,
    score,
    stages,
    timeline,
    with_citations,
    with_quotes,
)
from meta_agent_rag.demo.drawing import Lit, drawing, repair_nodes
from meta_agent_rag.demo.stepping import LoopStepper, LoopView, WhatIf
from meta_agent_rag.demo.tabs.loop import line
from meta_agent_rag.demo.words import STOP_REASONS
from meta_agent_rag.demo.workbench import sample_questions
from meta_agent_rag.errors import RefusedError
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Found, passages_of
from meta_agent_rag.settings import Settings
from meta_agent_rag.statistics.scores import score_answer
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
    question = sample_questions().get(QUESTION_ID)
    assert question is not None
    return LoopStepper.begin(engine, Task(question=QUESTION, evidence=passages_of(question.paragraphs)))


def ignore(_: LoopView) -> None:
    """Discard the update."""


class TestWalk:
    async def test_each_stage_is_shown_as_it_happens(self, engine: Engine) -> None:
        seen: list[LoopView] = []
        walk = begin(engine)
        await walk.advance(seen.append, steps=False)
        doubted = [sight.monitored.satisfied for sight in seen if sight.monitored is not None]
        assert doubted[0] is False
        assert doubted[-1] is True
        first = next(sight for sight in seen if sight.draft is not None)
        assert first.draft is not None
        assert first.draft.short_answer == WRONG
        assert not first.rounds
        assert walk.sight.status == "done"
        assert walk.sight.answer is not None
        assert walk.sight.answer.short_answer == RIGHT
        assert walk.sight.visited == (
            *("retrieve", "write", "diagnose", "insufficient_knowledge"),
            *("write", "diagnose"),
        )

    async def test_stepping_ends_with_the_same_answer_as_a_run(self, engine: Engine, model: ScriptedModel) -> None:
        whole, stepped = begin(engine), begin(engine)
        await whole.advance(ignore, steps=False)
        waiting = []
        while stepped.sight.status != "done":
            await stepped.advance(ignore, steps=True)
            waiting.append(stepped.sight.node)
        assert waiting == ["write", "diagnose", "insufficient_knowledge", "write", "diagnose", None]
        assert stepped.sight.answer is not None
        assert whole.sight.answer is not None
        assert replace(stepped.sight.answer, calls=(), rounds=()) == replace(whole.sight.answer, calls=(), rounds=())
        assert len(model.requests) == 10

    async def test_only_a_stopped_call_is_repeated(self, engine: Engine, model: ScriptedModel) -> None:
        walk = begin(engine)
        await walk.advance(ignore, steps=True)
        asked = asyncio.Event()

        def asking(_: Request) -> Line:
            asked.set()
            return "never said"

        model.script = {**STORY, "write": asking}
        model.seconds = 60.0
        task = asyncio.create_task(walk.advance(ignore, steps=False))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (walk.sight.status, walk.sight.node) == ("stopped", "write")
        model.script, model.seconds = STORY, 0.0
        await walk.advance(ignore, steps=False)
        assert walk.sight.status == "done"
        assert [request.stage for request in model.requests][:3] == ["write", "write", "second_answer"]
        assert "1 failed call" in timeline(walk.sight)

    async def test_an_error_is_shown_and_can_be_retried(self, engine: Engine, model: ScriptedModel) -> None:
        model.script = {**STORY, "write": RefusedError("The server refused <it>; try again.")}
        walk = begin(engine)
        await walk.advance(ignore, steps=False)
        assert walk.sight.status == "failed"
        assert line(walk.sight) == "The server refused <it>; try again."
        model.script = STORY
        seen: list[LoopView] = []
        await walk.advance(seen.append, steps=False)
        assert seen[-1].status == "done"

    async def test_every_stage_of_a_walk_is_described(self, engine: Engine) -> None:
        walk = begin(engine)
        await walk.advance(ignore, steps=False)
        reported = stages(walk.sight, engine.settings)
        for words in ("1 initial passage", "Second answer", "Follow-up searches", "1 new passage", "Satisfied"):
            assert words in reported
        assert "a step of the reasoning is missing" in reported
        assert walk.sight.answer is not None
        assert "Repaired: the first draft was wrong" in outcome(walk.sight.answer, (RIGHT,))
        assert "The answer differs from the first draft." in outcome(walk.sight.answer)


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


class TestWhatIsShown:
    def test_text_from_documents_and_models_never_becomes_markup(self) -> None:
        hostile = replace(BIRTH, title=MARKUP, text=f"{BIRTH_SENTENCE} {MARKUP}")
        evidence = {BIRTH.id: Found(passage=hostile, score=1.0, via=MARKUP, suspect=(MARKUP,))}
        shown = "".join(round_cards(round_(), round_(), evidence, Settings.load()))
        assert "<script" not in shown
        assert f"<mark>{BIRTH_SENTENCE[:-1]}</mark>" in shown
        assert shown.count("&lt;script&gt;") > 10

    def test_the_gauge_shows_the_deciding_signal(self) -> None:
        by_cosine = monitoring(
            round_(), Settings.load(["MONITOR_POLICY=paper", "MONITOR_SIMILARITY_THRESHOLD=0.4"]), {}
        )
        assert "Cosine of the two answers: 0.30, threshold 0.40" in by_cosine
        assert "Word overlap of the two answers" not in by_cosine
        by_agreement = monitoring(round_(satisfied=True), Settings.load(), {})
        assert "agreement decides" in by_agreement
        assert "Monitoring: Satisfied" in by_agreement

    def test_a_failed_second_answer_is_reported(self) -> None:
        failed = SecondAnswer(short_answer="", steps=(), packed_ids=(), error="The server was busy.")
        assert "The server was busy." in monitoring(round_(second_answer=failed), Settings.load(), {})

    def test_the_graph_highlights_the_active_node(self) -> None:
        repairs = repair_nodes(build_graph())
        assert repairs == discover_deficits().names
        assert {"insufficient_knowledge", "internal_only"} < set(repairs)
        shown = drawing(repairs, Lit(active="internal_only", visited=("retrieve", "write")))
        assert shown.count("m-active") == 2
        assert shown.count("m-visited") == 4
        assert "running: internal only" in shown
        assert "the answer is ready" in drawing(repairs, Lit(done=True))


def test_quotes_are_highlighted_in_their_passages() -> None:
    assert with_quotes("a < b. It was so. End", ["It was so", "was so. End", "nowhere"]) == (
        "a &lt; b. <mark>It was so. End</mark>"
    )


def test_citations_are_styled() -> None:
    assert with_citations("So <it> is [2].") == 'So &lt;it&gt; is <span class="m-cite">2</span>.'


def test_a_difference_shows_deletions_and_insertions() -> None:
    assert difference("born in Rome [1].", "born in Oslo & Rome [1].") == ("born in <ins>Oslo &amp;</ins> Rome [1].")
    assert difference("He left.", "") == "<del>He left.</del>"


def test_scores_use_the_best_matching_gold_answer() -> None:
    assert score("the Marren", ["River Marren", "Marren"]) == score_answer("Marren", ["Marren"])
    assert score("Upper Marren", ["River Marren"]) == score_answer("Upper Marren", ["River Marren"])
    assert score("anything", []) is None


def test_a_configuration_lists_its_differences(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    start = WhatIf.of(settings, "deepseek")
    other = replace(start, rounds=0, links=False, policy="paper")
    assert other.differences(start) == ("monitor policy: paper", "maximum repairs: 0", "links: off")
    assert start.differences(start) == ()


def test_every_stop_reason_has_a_sentence() -> None:
    assert set(STOP_REASONS) == set(get_args(StopReason))

"""Resolution: what a question describes is named over the passages, step by step, with checks in code."""

from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.derivation.resolution import describes
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.testing import Scripted
from tests.loop import FakeRetriever, Run, ask, draft, passage, user_text

QUESTION = "Lean on Pete stars the actor who is best known for playing what role in Granite Flats?"
PETE = passage("pete", "Lean on Pete stars Charlie Plummer as a boy with a horse.")
FLATS = passage("flats", "Granite Flats is a series in which Charlie Plummer plays Timmy Sanders.")
STEP = {
    "clue": "the actor in Lean on Pete",
    "name": "Charlie Plummer",
    "ask": "What is the role of Charlie Plummer in Granite Flats?",
}


async def resolved(
    folder: Path, steps: Scripted, *, value: str = "Timmy Sanders", question: str = QUESTION, **options: Any
) -> Run:
    script: dict[str, Scripted] = {
        "write": draft("Charlie Plummer", answer="It is Charlie Plummer [1]."),
        "plan": steps,
        "look_up": value,
        "route": {"steps": [], "rationale": "", "answer": "So.", "short_answer": "Nobody"},
    }
    options = {"evidence": (PETE, FLATS), **options} if "retriever" not in options else options
    settings = ("MONITOR_POLICY=vote", "PLANS=resolution", "ROUTES=plain_pass")
    return await ask(folder, script, *settings, question=question, **options)


async def test_a_described_name_is_resolved_and_the_rest_looked_up(tmp_path: Path) -> None:
    run = await resolved(tmp_path, STEP)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert [(fact.asked, fact.value, fact.passage_id) for fact in derivation.facts] == [
        ("the actor in Lean on Pete", "Charlie Plummer", "pete"),
        (STEP["ask"], "Timmy Sanders", "flats"),
    ]
    assert (derivation.answer, run.answer.short_answer) == ("Timmy Sanders", "Timmy Sanders")
    assert PETE.text in user_text(run.model.asked("plan")[0]), "the passages are in view"
    assert len(run.model.asked("plan")) == 1


@pytest.mark.parametrize(
    "step",
    [
        {**STEP, "name": "Lean on Pete"},
        {**STEP, "ask": "What is the role of the actor in Granite Flats?"},
        {**STEP, "ask": f"{QUESTION} Charlie Plummer"},
        {"clue": "the actor", "name": "Paul Venn", "ask": "Where was Paul Venn born?"},
        {**STEP, "name": ""},
    ],
    ids=["named in the question", "not asked about", "the question again", "from an example", "no name"],
)
async def test_after_a_step_that_leads_nowhere_the_question_is_planned(tmp_path: Path, step: dict[str, str]) -> None:
    plan = {"chains": [{"of": "", "facts": ["Which role has the actor in Granite Flats?"]}], "operator": "last"}

    def steps(request: Request) -> Any:
        return step if "clue" in user_text(request) else plan

    run = await resolved(tmp_path, steps)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert not derivation.resolved
    assert [fact.asked for fact in derivation.facts] == ["Which role has the actor in Granite Flats?"]


async def test_a_question_whose_plan_is_rejected_is_resolved(tmp_path: Path) -> None:
    nothing = {"chains": [{"of": "", "facts": ["What is the capital of France?"]}], "operator": "last"}

    def steps(request: Request) -> Any:
        return STEP if "clue" in user_text(request) else nothing

    question = "What role has the actor of Lean on Pete in Granite Flats?"
    assert not describes(question)
    run = await resolved(tmp_path, steps, question=question)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert derivation.resolved
    assert derivation.answer == "Timmy Sanders"


async def test_a_name_that_no_passage_has_is_searched_by_its_description(tmp_path: Path) -> None:
    found = FakeRetriever({QUESTION: [FLATS], "the actor in Lean on Pete": [PETE]})
    other = {**STEP, "name": "Steve Zahn", "ask": "What is the role of Steve Zahn in Granite Flats?"}

    def steps(request: Request) -> Any:
        return STEP if PETE.text in user_text(request) else other

    run = await resolved(tmp_path, steps, retriever=found)
    first = run.answer.rounds[0].diagnosis
    assert first is not None
    assert (first.deficit, first.about) == ("insufficient_knowledge", "the actor in Lean on Pete")
    assert found.queries == [QUESTION, "the actor in Lean on Pete"]
    assert run.answer.short_answer == "Timmy Sanders"


@pytest.mark.parametrize(
    ("question", "described"),
    [
        (QUESTION, True),
        ("The museum that Ada Holm founded is in a town with what population?", True),
        ("Who is older, Ada Roth or Bo Lind?", False),
        ("Are both Tern Island and Port Rees in Norway?", False),
        ("Where was Ada Holm born?", False),
    ],
)
def test_only_questions_that_describe_something_are_resolved(question: str, described: bool) -> None:
    assert describes(question) is described

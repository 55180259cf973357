"""Resolution: what a question describes is named over the passages, step by step, with checks in code."""

from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.derivation import Derivation
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


NOTHING = {"chains": [{"of": "", "facts": ["What is the capital of France?"]}], "operator": "last"}


async def resolved(folder: Path, steps: Scripted, *, value: str = "Timmy Sanders", **options: Any) -> Run:
    def planned(request: Request) -> Any:
        """The step for the resolution, and a plan that is rejected for the planner."""
        return (steps(request) if callable(steps) else steps) if "clue" in user_text(request) else NOTHING

    script: dict[str, Scripted] = {
        "write": draft("Charlie Plummer", answer="It is Charlie Plummer [1]."),
        "plan": planned,
        "look_up": value,
        "route": {"steps": [], "rationale": "", "answer": "So.", "short_answer": "Nobody"},
    }
    options = {"evidence": (PETE, FLATS), **options} if "retriever" not in options else options
    settings = ("MONITOR_POLICY=vote", "PLANS=resolution", "ROUTES=plain_pass")
    return await ask(folder, script, *settings, question=QUESTION, **options)


def derived(run: Run) -> Derivation:
    found = run.answer.rounds[0].derivation
    assert found is not None
    return found


async def test_a_described_name_is_resolved_and_the_rest_looked_up(tmp_path: Path) -> None:
    run = await resolved(tmp_path, STEP)
    derivation = derived(run)
    assert [(fact.asked, fact.value, fact.passage_id) for fact in derivation.facts] == [
        ("the actor in Lean on Pete", "Charlie Plummer", "pete"),
        (STEP["ask"], "Timmy Sanders", "flats"),
    ]
    assert (derivation.answer, run.answer.short_answer) == ("Timmy Sanders", "Timmy Sanders")
    assert PETE.text in user_text(run.model.asked("plan")[-1]), "the passages are in view"


async def test_a_question_left_without_the_name_gets_it_for_the_clue(tmp_path: Path) -> None:
    step = {
        "clue": "the actor who is best known for playing what role in Granite Flats?",
        "name": "Charlie Plummer",
        "ask": "Which role has the actor who is best known for playing what role in Granite Flats?",
    }
    derivation = derived(await resolved(tmp_path, step))
    assert derivation.facts[1].asked == "Which role has Charlie Plummer?"


async def test_a_value_that_the_question_names_answers_nothing(tmp_path: Path) -> None:
    derivation = derived(await resolved(tmp_path, STEP, value="Granite Flats"))
    assert derivation.answer == ""
    assert [fact.value for fact in derivation.open_facts] == ["Granite Flats"]


@pytest.mark.parametrize(
    "step",
    [
        {**STEP, "name": "Lean on Pete"},
        {**STEP, "clue": "role", "ask": "What is the role of the actor in Granite Flats?"},
        {**STEP, "ask": f"{QUESTION} Charlie Plummer"},
        {"clue": "the actor", "name": "Paul Venn", "ask": "Where was Paul Venn born?"},
        {**STEP, "name": ""},
    ],
    ids=["named in the question", "what the question asks for", "the question again", "from an example", "no name"],
)
async def test_a_step_that_leads_nowhere_derives_nothing(tmp_path: Path, step: dict[str, str]) -> None:
    derivation = derived(await resolved(tmp_path, step))
    assert (derivation.plan, derivation.answer) == (None, "")


async def test_a_plan_that_passes_is_kept(tmp_path: Path) -> None:
    plan = {"chains": [{"of": "", "facts": ["Which role has the actor in Granite Flats?"]}], "operator": "last"}
    script: dict[str, Scripted] = {
        "write": draft("Charlie Plummer"),
        "plan": plan,
        "look_up": "Timmy Sanders",
        "route": draft("Nobody"),
    }
    settings = ("MONITOR_POLICY=vote", "PLANS=resolution", "ROUTES=")
    derivation = derived(await ask(tmp_path, script, *settings, question=QUESTION, evidence=(PETE, FLATS)))
    assert not derivation.resolved
    assert [fact.asked for fact in derivation.facts] == ["Which role has the actor in Granite Flats?"]


async def test_a_name_that_no_passage_has_is_searched_by_its_description(tmp_path: Path) -> None:
    found = FakeRetriever({QUESTION: [FLATS], "the actor in Lean on Pete": [PETE]})
    other = {**STEP, "name": "Steve Zahn", "ask": "What is the role of Steve Zahn in Granite Flats?"}

    def steps(request: Request) -> Any:
        return STEP if PETE.text in user_text(request) else other

    run = await resolved(tmp_path, steps, retriever=found)
    first = run.answer.rounds[0].diagnosis
    assert first is not None
    assert (first.deficit, first.about) == ("insufficient_knowledge", "the actor in Lean on Pete")
    left = STEP["ask"]
    assert found.queries == [QUESTION, "the actor in Lean on Pete", "Charlie Plummer", left]
    assert run.answer.short_answer == "Timmy Sanders"

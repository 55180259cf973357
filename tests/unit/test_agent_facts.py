"""The loop under MONITOR_POLICY=vote: a derivation, a vote over routes, and a diagnosis by facts."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.deficits import Findings, discover_deficits
from meta_agent_rag.agent.derivation import Chain, Derivation, Fact, Plan
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.prompting import Packed
from meta_agent_rag.agent.routes import DRAFT, Ballot, Vote
from meta_agent_rag.agent.state import Draft, Packing, Round, Signals, State
from meta_agent_rag.agent.write import draft_from_vote
from meta_agent_rag.errors import BudgetError
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import Scripted, ScriptedModel
from tests.loop import (
    BIRTH,
    BIRTH_SENTENCE,
    EVIDENCE,
    FILM,
    FILM_SENTENCE,
    FakeRetriever,
    Run,
    ask,
    draft,
    settings_in,
    user_text,
)

QUESTION = "Where was the man who directed The Salt Road born?"
"""Its grammar yields no plan, so the planner is called."""
CHAIN = {"chains": [{"of": "", "facts": ["Who directed The Salt Road?", "Where was # born?"]}], "operator": "last"}
THREE = "ROUTES=plain_pass,chain_of_thought,step_by_step"
OLDER = "Who is older, Ada Roth or Bo Lind?"
AGES = (
    FILM.__class__(id="ada", doc_id="ada", title="Ada Roth", text="Ada Roth was born on 8 May 1931 in Oslo."),
    FILM.__class__(id="bo", doc_id="bo", title="Bo Lind", text="Bo Lind was born on 2 May 1952 in Bergen."),
)
BIRTHS = {
    "chains": [
        {"of": "Ada Roth", "facts": ["When was Ada Roth born?"]},
        {"of": "Bo Lind", "facts": ["When was Bo Lind born?"]},
    ],
    "operator": "latest",
}


def values(known: Mapping[str, str]) -> Scripted:
    """A script that answers each look-up by the fact it asks for."""

    def line(request: Request) -> str:
        said = user_text(request)
        return next((value for asked, value in known.items() if asked in said), "NOT FOUND")

    return line


LOOKED_UP = values({"Where was Mira Holt born?": "Oslo", "Who directed The Salt Road?": "Mira Holt"})


def route(short: str) -> dict[str, Any]:
    return {"steps": ["A step."], "rationale": "So.", "answer": f"It is {short}.", "short_answer": short}


class PlanAndDraftBarrier(ScriptedModel):
    """Replies to the draft and plan requests only after both have been made."""

    both: asyncio.Barrier = Field(default_factory=lambda: asyncio.Barrier(2))

    async def complete(self, request: Request) -> Reply:
        if request.stage in {"write", "plan"}:
            async with asyncio.timeout(5):
                await self.both.wait()
        return await super().complete(request)


async def vote(folder: Path, script: Mapping[str, Scripted], *assignments: str, **options: Any) -> Run:
    return await ask(folder, script, "MONITOR_POLICY=vote", *assignments, **{"question": QUESTION, **options})


async def test_a_draft_confirmed_by_the_derivation_needs_no_other_route(tmp_path: Path) -> None:
    run = await vote(tmp_path, {"write": draft("Oslo"), "plan": CHAIN, "look_up": LOOKED_UP})
    assert run.stages == ["write", "plan", "look_up", "look_up"]
    assert (run.answer.short_answer, run.answer.stop_reason, len(run.answer.rounds)) == ("Oslo", "satisfied", 1)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert derivation.stands
    assert 0.5 < (run.answer.rounds[0].p_correct or 0.0) < 1.0
    assert [(fact.value, fact.passage_id) for fact in derivation.facts] == [("Mira Holt", "film"), ("Oslo", "birth")]


async def test_a_comparison_in_code_outranks_the_draft(tmp_path: Path) -> None:
    looked_up = values({"Ada Roth born": "8 May 1931", "Bo Lind born": "2 May 1952"})
    script = {"write": draft("Bo Lind"), "plan": BIRTHS, "look_up": looked_up}
    run = await vote(tmp_path, script, question=OLDER, evidence=AGES)
    assert run.answer.short_answer == "Ada Roth"
    assert run.answer.fired
    assert run.answer.rounds[0].diagnosis is not None
    assert run.answer.rounds[0].diagnosis.deficit == "reasoning_error"
    assert run.answer.rounds[0].diagnosis.source == "facts"
    assert "8 May 1931 is earlier than 2 May 1952" in run.answer.rounds[0].diagnosis.rationale
    assert run.stages == ["write", "plan", "look_up", "look_up"], "taking the derived answer costs no call"
    assert "[1]" in run.answer.text


async def test_a_draft_that_stops_one_hop_early_is_a_reasoning_error(tmp_path: Path) -> None:
    script = {"write": draft("Mira Holt"), "plan": CHAIN, "look_up": LOOKED_UP, "route": route("Oslo")}
    run = await vote(tmp_path, script)
    diagnosis = run.answer.rounds[0].diagnosis
    assert diagnosis is not None
    assert (diagnosis.deficit, diagnosis.about) == ("reasoning_error", "Who directed The Salt Road?")
    assert run.answer.short_answer == "Oslo"


async def test_a_draft_contradicted_by_the_passages_is_rewritten_from_them(tmp_path: Path) -> None:
    script = {
        "write": draft("Bergen"),
        "plan": CHAIN,
        "look_up": LOOKED_UP,
        "route": route("Oslo"),
        "rewrite": draft("Oslo", quotes=[BIRTH_SENTENCE]),
    }
    run = await vote(tmp_path, script)
    diagnosis = run.answer.rounds[0].diagnosis
    assert diagnosis is not None
    assert (diagnosis.deficit, diagnosis.about) == ("external_only", "Where was Mira Holt born?")
    assert (run.answer.short_answer, run.stages[-1]) == ("Oslo", "rewrite")


async def test_the_plan_and_the_draft_are_requested_concurrently(tmp_path: Path) -> None:
    model = PlanAndDraftBarrier(script={"write": draft("Oslo"), "plan": CHAIN, "look_up": LOOKED_UP})
    run = await vote(tmp_path, {}, model=model)
    assert run.answer.short_answer == "Oslo"


async def test_the_draft_is_kept_if_the_plan_exceeds_the_budget(tmp_path: Path) -> None:
    model = ScriptedModel({"write": draft("Oslo"), "plan": BudgetError("The cost limit is reached.")})
    run = await vote(tmp_path, {}, model=model)
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "budget")


async def test_a_question_about_a_maker_needs_no_planner(tmp_path: Path) -> None:
    asked = "Where was the director of The Salt Road born?"
    values_ = values({"Where was Mira Holt born?": "Oslo", "Who is the director of The Salt Road?": "Mira Holt"})
    run = await vote(tmp_path, {"write": draft("Oslo"), "look_up": values_}, question=asked)
    assert run.stages == ["write", "look_up", "look_up"]
    assert run.answer.stop_reason == "satisfied"


async def test_only_the_open_fact_is_searched_and_looked_up_again(tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM], "Where was Mira Holt born?": [BIRTH]})
    looked_up: dict[str, int] = {}

    def line(request: Request) -> str:
        said = user_text(request)
        if "Who directed" in said:
            looked_up["film"] = looked_up.get("film", 0) + 1
            return "Mira Holt"
        return "Oslo" if BIRTH_SENTENCE in said else "NOT FOUND"

    script: Mapping[str, Scripted] = {
        "write": draft("Paris", quotes=[FILM_SENTENCE]),
        "plan": CHAIN,
        "look_up": line,
        "route": [route("Rome"), route("Madrid"), route("Lima")],
    }
    run = await vote(tmp_path, script, THREE, retriever=retriever)
    first = run.answer.rounds[0].diagnosis
    assert first is not None
    assert (first.deficit, first.about) == ("insufficient_knowledge", "Where was Mira Holt born?")
    assert retriever.queries == [QUESTION, "Where was Mira Holt born?"]
    assert run.answer.short_answer == "Oslo"
    assert looked_up == {"film": 1}, "an established fact is not looked up again"


async def test_a_fact_that_no_search_finds_is_asked_from_memory(tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM]})
    script: Mapping[str, Scripted] = {
        "write": draft("Paris"),
        "plan": CHAIN,
        "look_up": values({"Who directed": "Mira Holt"}),
        "recall": "Oslo",
        "route": [route("Rome"), route("Madrid"), route("Lima")],
    }
    run = await vote(tmp_path, script, THREE, retriever=retriever)
    named = [round_.diagnosis.deficit for round_ in run.answer.rounds if round_.diagnosis is not None]
    assert named[:2] == ["insufficient_knowledge", "internal_only"]
    assert run.answer.rounds[-1].derivation is not None
    assert run.answer.rounds[-1].derivation.facts[-1].from_memory
    assert "from memory" in run.answer.rounds[2].draft.answer


async def test_a_plan_that_fails_twice_is_dropped(tmp_path: Path) -> None:
    useless = {"chains": [{"of": "", "facts": [QUESTION, "Where was # born?"]}], "operator": "last"}
    script = {"write": draft("Oslo"), "plan": useless, "route": route("Oslo")}
    run = await vote(tmp_path, script)
    assert run.stages == ["write", "plan", "plan", "route"]
    assert "restates" in user_text(run.model.asked("plan")[1])
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert derivation.plan is None
    assert "restates" in (derivation.dropped or "")
    assert run.answer.stop_reason == "satisfied"


async def test_a_plan_that_restates_the_question_is_not_retried(tmp_path: Path) -> None:
    whole = {"chains": [{"of": "", "facts": [QUESTION]}], "operator": "last"}
    run = await vote(tmp_path, {"write": draft("Oslo"), "plan": whole, "route": route("Oslo")})
    assert run.stages == ["write", "plan", "route"]


async def test_a_rewrite_that_repeats_the_draft_adds_no_vote(tmp_path: Path) -> None:
    whole = {"chains": [{"of": "", "facts": [QUESTION]}], "operator": "last"}
    unquoted = draft("Paris", quotes=["Nobody wrote this."])
    script: Mapping[str, Scripted] = {
        "write": unquoted,
        "rewrite": unquoted,
        "plan": whole,
        "route": [route("Oslo"), route("Oslo"), route("Lima"), route("Rome"), route("Bonn")],
    }
    run = await vote(tmp_path, script)
    named = [round_.diagnosis.deficit for round_ in run.answer.rounds if round_.diagnosis is not None]
    assert named == ["external_only", "reasoning_error"]
    assert run.answer.short_answer == "Oslo"


async def test_routes_are_sampled_while_the_vote_is_undecided(tmp_path: Path) -> None:
    useless = {"chains": [{"of": "", "facts": [QUESTION]}], "operator": "last"}
    script: Mapping[str, Scripted] = {
        "write": draft("Paris"),
        "plan": useless,
        "route": [route("Oslo"), route("Oslo"), route("Oslo")],
    }
    run = await vote(tmp_path, script)
    counted = run.answer.rounds[0].vote
    assert counted is not None
    assert counted.elected == "Oslo"
    assert run.answer.short_answer == "Oslo"
    assert run.answer.rounds[-1].draft.route == "plain_pass"


async def test_a_failed_route_has_no_vote(tmp_path: Path) -> None:
    useless = {"chains": [{"of": "", "facts": [QUESTION]}], "operator": "last"}
    script: Mapping[str, Scripted] = {"write": draft("Oslo"), "plan": useless, "route": "no JSON at all"}
    run = await vote(tmp_path, script)
    assert (run.answer.short_answer, run.answer.fired) == ("Oslo", False)


async def test_the_critic_can_still_be_the_diagnoser(tmp_path: Path) -> None:
    script: Mapping[str, Scripted] = {
        "write": draft("Mira Holt"),
        "plan": CHAIN,
        "look_up": LOOKED_UP,
        "route": route("Oslo"),
        "evaluate": {
            "rationale": "It stops a hop early.",
            "deficit": "reasoning_error",
            "error_type": "incomplete_reasoning",
            "suggestion": "Read on.",
            "suggested_queries": [],
        },
        "rewrite": draft("Oslo", quotes=[BIRTH_SENTENCE]),
    }
    run = await vote(tmp_path, script, "DIAGNOSIS=critic")
    assert run.stages[-2:] == ["evaluate", "rewrite"]
    assert run.answer.short_answer == "Oslo"


async def test_a_look_up_prompt_omits_the_users_wording(tmp_path: Path) -> None:
    script = {"write": draft("Oslo"), "plan": CHAIN, "look_up": LOOKED_UP}
    settings = settings_in(tmp_path, "MONITOR_POLICY=vote")
    model = ScriptedModel(script)
    async with open_engine(settings, model=model, monitor_encoder=AsyncEncoder(HashEncoder())) as engine:
        await engine.run(Task(question=QUESTION, evidence=EVIDENCE, asked="And where was he born?"))
    assert "And where was he born?" in user_text(model.asked("write")[0])
    assert all("And where was he born?" not in user_text(request) for request in model.asked("look_up"))


async def test_a_fact_stays_open_if_memory_does_not_know_it(tmp_path: Path) -> None:
    script: Mapping[str, Scripted] = {
        "write": draft("Paris"),
        "plan": CHAIN,
        "look_up": values({"Who directed": "Mira Holt"}),
        "recall": "NOT FOUND",
        "route": [route("Rome"), route("Madrid"), route("Lima")],
    }
    run = await vote(tmp_path, script, THREE, retriever=FakeRetriever({QUESTION: [FILM]}))
    derivation = run.answer.rounds[-1].derivation
    assert derivation is not None
    assert derivation.facts[-1].open is not None
    assert not derivation.answer
    assert len(run.model.asked("recall")) == 1


@pytest.mark.parametrize(("short", "named"), [("Oslo", None), ("Bergen", "Where was Mira Holt born?")])
def test_a_draft_contradicts_the_passages_only_by_a_different_answer(short: str, named: str | None) -> None:
    facts = ("Who directed The Salt Road?", "Mira Holt"), ("Where was Mira Holt born?", "Oslo")
    derivation = Derivation(
        plan=Plan(operator="last", chains=(Chain(of="", facts=("Who directed The Salt Road?", "Where was # born?")),)),
        facts=tuple(
            Fact(chain=0, index=index, asked=asked, entity="", value=value)
            for index, (asked, value) in enumerate(facts)
        ),
        answer="Oslo",
    )
    findings = Findings(
        question=QUESTION,
        draft=Draft(answer="", short_answer=short),
        signals=Signals(similarity=None, agreement=None, verbatim=1.0, abstained=False, evidence_passages=2),
        derivation=derivation,
        vote=Vote(elected="Rome", route="plain_pass", share=0.6, ballots=(), support=()),
        may_search=False,
    )
    found = discover_deficits()["external_only"].detect(findings)
    assert (found.about if found is not None else None) == named


def test_an_elected_draft_keeps_the_packing_that_its_citations_refer_to() -> None:
    said = Draft(answer="She was born in Oslo [1].", short_answer="Oslo")
    cited, whole = Packing(packed_ids=("birth",)), Packing(packed_ids=("film", "birth"))
    earlier = Round(index=1, draft=said, packing=cited, evidence_ids=("film", "birth"))
    ballot = Ballot(route=DRAFT, short_answer="Oslo")
    won = Vote(elected="Oslo", route=DRAFT, share=1.0, ballots=(ballot,), support=(1.0,))
    state = State(question=QUESTION, rounds=(earlier,), derivation=Derivation(plan=None))
    assert draft_from_vote(state, won, Packed(text="", texts=(), packing=whole)) == (said, cited)


@pytest.mark.parametrize(("born", "weight", "elected"), [("Oslo", 1.6, "Paris"), ("Rome", 0.6, "Paris")])
async def test_a_derivation_weighs_what_the_documents_say(
    tmp_path: Path, born: str, weight: float, elected: str
) -> None:
    looked_up = values({"Where was Mira Holt born?": born, "Who directed The Salt Road?": "Mira Holt"})
    script = {"write": draft("Paris"), "plan": CHAIN, "look_up": looked_up, "route": route("Paris")}
    run = await vote(tmp_path, script, "ROUTES=plain_pass,plain_pass")
    counted = run.answer.rounds[0].vote
    assert counted is not None
    weights = {ballot.route: ballot.weight for ballot in counted.ballots}
    assert weights == {"quoted_draft": 1.0, "derivation": weight, "plain_pass": 1.0}
    assert counted.elected == elected
    # word F1 between the two answers is 0, so an answer's support is its share of the weight
    routes = len(counted.ballots)
    share = (routes - 1) / (routes - 1 + weight)
    assert counted.share == pytest.approx(share, abs=1e-4)

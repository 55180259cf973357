"""The loop under MONITOR_POLICY=vote: a derivation, a vote over routes, and a diagnosis by facts."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.errors import BudgetError, CorpusError, DeadlineError
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.retrieval.retriever import Retrieval
from meta_agent_rag.testing import Scripted, ScriptedModel
from tests.loop import (
    BIRTH,
    BIRTH_SENTENCE,
    FILM,
    FILM_SENTENCE,
    FakeRetriever,
    Run,
    ask,
    critique,
    draft,
    passage,
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
NAMESAKE = FILM.__class__(id="holt", doc_id="holt", title="Mira Holt", text="Mira Holt directs films.")
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


async def test_the_draft_is_kept_if_the_plan_exceeds_the_budget(tmp_path: Path) -> None:
    model = ScriptedModel({"write": draft("Oslo"), "plan": BudgetError("The cost limit is reached.")})
    run = await vote(tmp_path, {}, model=model)
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "budget")


async def test_the_ballots_so_far_decide_if_a_route_exceeds_a_limit(tmp_path: Path) -> None:
    script = {"write": draft("Mira Holt"), "plan": CHAIN, "look_up": LOOKED_UP, "route": DeadlineError("late")}
    run = await vote(tmp_path, script)
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "deadline")
    assert run.answer.rounds[-1].p_correct is not None
    run = await vote(tmp_path, {**script, "write": draft("Bergen"), "rewrite": draft("Oslo")})
    assert (run.answer.stop_reason, "rewrite" in run.stages) == ("deadline", False)


async def test_the_subject_of_a_later_fact_is_searched_before_it_is_looked_up(tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM], "Where was Mira Holt born?": [BIRTH]})
    script: Mapping[str, Scripted] = {
        "write": draft("Mira Holt", quotes=[FILM_SENTENCE]),
        "plan": CHAIN,
        "look_up": LOOKED_UP,
        "route": route("Oslo"),
    }
    run = await vote(tmp_path, script, retriever=retriever)
    first = run.answer.rounds[0]
    assert retriever.queries == [QUESTION, "Mira Holt", "Where was Mira Holt born?"]
    assert first.derivation is not None
    assert [(fact.passage_id, fact.searched) for fact in first.derivation.facts] == [("film", False), ("birth", True)]
    assert (first.evidence_ids, first.searched_ids) == (("film",), ("birth",))
    assert run.answer.rounds[1].evidence_ids == ("film", "birth")
    assert first.diagnosis is not None
    assert (first.diagnosis.deficit, first.diagnosis.about) == ("insufficient_knowledge", "Where was Mira Holt born?")
    assert run.answer.short_answer == "Oslo"
    assert run.stages == ["write", "plan", "look_up", "look_up", "route"], (
        "neither the search nor its answer costs a call"
    )


async def test_what_a_search_found_is_no_reason_to_adopt_another_answer(tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM], "Where was Mira Holt born?": [BIRTH]})
    script = {"write": draft("Paris", quotes=[FILM_SENTENCE]), "plan": CHAIN, "look_up": LOOKED_UP}
    run = await vote(tmp_path, {**script, "route": route("Rome"), "rewrite": draft("Rome")}, THREE, retriever=retriever)
    first = run.answer.rounds[0]
    assert first.vote is not None
    assert first.vote.elected == "Rome"
    assert first.diagnosis is not None
    assert first.diagnosis.deficit != "insufficient_knowledge"


async def test_a_passage_that_the_draft_had_was_not_found_since(tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM, BIRTH], "Where was Mira Holt born?": [BIRTH]})
    run = await vote(tmp_path, {"write": draft("Oslo"), "plan": CHAIN, "look_up": LOOKED_UP}, retriever=retriever)
    first = run.answer.rounds[0]
    assert first.derivation is not None
    assert (first.searched_ids, [fact.searched for fact in first.derivation.facts]) == ((), [False, False])
    assert first.searches == ("Mira Holt", "Where was Mira Holt born?")


@pytest.mark.parametrize("fault", [CorpusError("The index does not respond."), ConnectionError("gone"), None])
async def test_a_search_that_fails_or_is_late_leaves_the_fact_open(fault: Exception | None, tmp_path: Path) -> None:
    class Failing(FakeRetriever):
        async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
            if queries[0] == "Mira Holt":
                if fault is not None:
                    raise fault
                await asyncio.sleep(60)
            return await super().retrieve(queries, k=k, exclude=exclude)

    script: Mapping[str, Scripted] = {
        "write": draft("Paris", quotes=[FILM_SENTENCE]),
        "plan": CHAIN,
        "look_up": values({"Who directed": "Mira Holt"}),
        "route": route("Paris"),
    }
    deadline = None if fault is not None else time.monotonic() + 4
    run = await vote(tmp_path, script, THREE, retriever=Failing({QUESTION: [FILM]}), deadline=deadline)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert [fact.open is None for fact in derivation.facts] == [True, False]
    assert run.answer.short_answer == "Paris"


async def test_a_repair_whose_search_fails_keeps_the_drafts(tmp_path: Path) -> None:
    class Failing(FakeRetriever):
        async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
            if queries[0] != QUESTION:
                raise ConnectionError("gone")
            return await super().retrieve(queries, k=k, exclude=exclude)

    script: Mapping[str, Scripted] = {"write": draft("Paris"), "plan": CHAIN, "route": route("Rome")}
    script = {**script, "look_up": values({"Who directed": "Mira Holt"})}
    run = await vote(tmp_path, script, THREE, retriever=Failing({QUESTION: [FILM]}))
    assert run.answer.stop_reason == "search_failed"
    assert run.answer.short_answer in {"Paris", "Rome"}


async def test_routes_that_abstain_cast_no_vote(tmp_path: Path) -> None:
    script: Mapping[str, Scripted] = {
        "write": draft("Oslo", quotes=[BIRTH_SENTENCE]),
        "plan": "no plan",
        "route": [route("NOT FOUND")] * 3,
    }
    run = await vote(tmp_path, script, THREE)
    assert run.answer.short_answer == "Oslo"
    assert not run.answer.rounds[-1].draft.abstained


async def test_a_look_up_that_declines_gives_no_date(tmp_path: Path) -> None:
    ages = values({"Ada Roth born": "Not stated; her film is from 1969.", "Bo Lind born": "2 May 1952"})
    script = {"write": draft("Ada Roth"), "plan": BIRTHS, "look_up": ages, "route": route("Ada Roth")}
    run = await vote(tmp_path, script, THREE, question=OLDER, evidence=AGES)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert "1969" not in {fact.value for fact in derivation.facts}
    assert run.answer.short_answer == "Ada Roth"


async def test_only_the_open_fact_is_searched_and_looked_up_again(tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM, NAMESAKE], "Where was Mira Holt born?": [BIRTH]})
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
    assert retriever.queries == [QUESTION, "Where was Mira Holt born?"], "a passage is about her already"
    assert run.answer.short_answer == "Oslo"
    assert looked_up == {"film": 1}, "an established fact is not looked up again"


async def test_a_fact_that_two_chains_share_counts_for_both_when_one_is_looked_up_again(tmp_path: Path) -> None:
    question = "Do director of film Blue Hill and director of film Grey Water have the same nationality?"
    chains = [
        {"of": film, "facts": [f"Who directed the film {film}?", "What is the nationality of #?"]}
        for film in ("Blue Hill", "Grey Water")
    ]
    blue, grey = (passage(film, f"{film} is a film by Mira Holt.") for film in ("blue hill", "grey water"))
    holt = passage("mira holt", "Mira Holt is a Norwegian director.")
    script: Mapping[str, Scripted] = {
        "write": draft("no"),
        "plan": {"chains": chains, "operator": "same"},
        "look_up": values(
            {"film Blue Hill?": "Mira Holt", "film Grey Water?": "Mira Holt", "nationality": "Norwegian"}
        ),
        "route": [route("no")] * 3,
    }
    retriever = FakeRetriever({question: [blue, holt], "Who directed the film Grey Water?": [grey]})
    run = await vote(tmp_path, script, THREE, question=question, retriever=retriever)
    assert run.answer.short_answer == "yes"


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


MAN = "Who is the man who directed The Salt Road?"
NESTED = "Which river flows through the town where the man who directed The Salt Road was born?"
NAMING = "What is the name of the river that The Salt Road crosses, a long one?"
TITLE = "What is the first novel by Ada Holm called?"


@pytest.mark.parametrize(
    ("question", "parts", "facts"),
    [
        (QUESTION, ["the man who directed The Salt Road"], (MAN, "Where was # born?")),
        (
            NESTED,
            ["the town where the man who directed The Salt Road was born", "the man who directed The Salt Road"],
            (MAN, "What is the town where # was born?", "Which river flows through #?"),
        ),
        (QUESTION, ["\u201cman who directed The Salt Road\u201d"], (MAN, "Where was # born?")),
        (QUESTION, ["the man who directed The"], None),
        (QUESTION, ["The Salt Road"], None),
        (QUESTION, ["the man who directed Salt Roads"], None),
        (QUESTION, [QUESTION], None),
        (QUESTION, ["Where was the man who directed The Salt Road"], None),
        (QUESTION, ["he man who directed The Salt Road"], None),
        (NAMING, ["the river that The Salt Road crosses, a long one"], None),
        (TITLE, ["the first novel by Ada Holm"], None),
        (QUESTION, [""], None),
    ],
)
async def test_what_a_question_describes_takes_the_place_of_a_rejected_plan(
    question: str, parts: Sequence[str], facts: Sequence[str] | None, tmp_path: Path
) -> None:
    whole = {"chains": [{"of": "", "facts": [question]}], "operator": "last"}
    replies: list[Mapping[str, Any]] = [whole, *({"described": part} for part in parts)]
    script: Mapping[str, Scripted] = {
        "write": draft("Oslo"),
        "plan": [*replies, {"described": ""}],
        "look_up": values({MAN: "Mira Holt", "Where was Mira Holt born?": "Oslo"}),
        "route": [route("Oslo")] * 3,
    }
    derivation = (await vote(tmp_path, script, THREE, question=question)).answer.rounds[0].derivation
    assert derivation is not None
    made = derivation.plan
    assert (None if made is None else made.chains[0].facts) == facts
    if facts is None:
        assert derivation.dropped == f"the fact {question!r} restates the question"


async def test_a_question_with_the_sign_for_an_earlier_value_has_no_plan(tmp_path: Path) -> None:
    question = "Who sang the #1 hit of the man who directed The Salt Road?"
    run = await vote(tmp_path, {"write": draft("Oslo"), "route": [route("Oslo")] * 3}, THREE, question=question)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert "contains '#'" in (derivation.dropped or "")
    assert "plan" not in run.stages


@pytest.mark.parametrize(("short", "searched"), [("Mira Holt", True), (FILM.title, False)])
async def test_without_a_plan_a_draft_is_searched_unless_its_passage_was_read(
    short: str, searched: bool, tmp_path: Path
) -> None:
    script: Mapping[str, Scripted] = {"write": draft(short), "plan": "no plan", "route": [route("Oslo")] * 3}
    retriever = FakeRetriever({QUESTION: [FILM], f"{short} {QUESTION}": [BIRTH]})
    run = await vote(tmp_path, script, THREE, retriever=retriever)
    assert run.answer.rounds[0].searched_ids == (("birth",) if searched else ())
    assert (f"{short} {QUESTION}" in retriever.queries) == searched


async def test_the_critic_can_still_be_the_diagnoser(tmp_path: Path) -> None:
    script: Mapping[str, Scripted] = {
        "write": draft("Mira Holt"),
        "plan": CHAIN,
        "look_up": LOOKED_UP,
        "route": route("Oslo"),
        "evaluate": critique("reasoning_error", suggestion="Read on."),
        "rewrite": draft("Oslo", quotes=[BIRTH_SENTENCE]),
    }
    run = await vote(tmp_path, script, "DIAGNOSIS=critic")
    assert run.stages[-2:] == ["evaluate", "rewrite"]
    assert run.answer.short_answer == "Oslo"


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

"""What each deficit changes in the next draft, and what it retrieves."""

from pathlib import Path

import pytest

from meta_agent_rag.agent.follow_up_queries import restates
from meta_agent_rag.prompts import phrase
from meta_agent_rag.retrieval.screening import Dropped
from tests.loop import (
    BIRTH,
    BIRTH_SENTENCE,
    FILM,
    FILM_SENTENCE,
    NAMESAKE,
    QUESTION,
    WRONG,
    FakeRetriever,
    ask,
    critique,
    draft,
    passage,
    second_answer,
)

MISSING = "birthplace of Mira Holt"


async def test_the_internal_only_repair_answers_from_memory(tmp_path: Path) -> None:
    run = await ask(tmp_path, {**WRONG, "evaluate": critique("internal_only")})
    prompt = run.prompt("rewrite")
    assert FILM_SENTENCE not in prompt
    assert "<passage" not in prompt
    assert phrase("mode_memory") in prompt
    assert run.answer.rounds[1].packing.packed_ids == ()
    assert run.answer.rounds[1].plan is not None
    assert run.answer.rounds[1].plan.answer_mode == "memory"
    assert run.answer.rounds[1].evidence_ids == ("film", "birth"), "the evidence found is kept"


async def test_the_short_answer_of_a_memory_draft_is_written_without_evidence(tmp_path: Path) -> None:
    short = [{"short_answer": "Paris"}, {"short_answer": "Oslo"}]
    script = {**WRONG, "evaluate": critique("internal_only"), "short_answer": short}
    run = await ask(tmp_path, script, "SHORT_ANSWER=stage")
    assert FILM_SENTENCE in run.prompt("short_answer", 0)
    assert FILM_SENTENCE not in run.prompt("short_answer", 1)


async def test_a_memory_draft_is_told_the_facts_from_the_passages(tmp_path: Path) -> None:
    first = draft("Paris", quotes=[FILM_SENTENCE, "She was never near Oslo."])
    run = await ask(tmp_path, {**WRONG, "write": first, "evaluate": critique("internal_only")})
    prompt = run.prompt("rewrite")
    assert f"{phrase('known_facts')} {FILM_SENTENCE}" in prompt
    assert "She was never near Oslo." not in prompt.partition("Output format:")[0].partition("Facts")[2]
    assert BIRTH_SENTENCE not in prompt


async def test_the_external_only_repair_answers_from_evidence_alone(tmp_path: Path) -> None:
    run = await ask(tmp_path, {**WRONG, "evaluate": critique("external_only")})
    prompt = run.prompt("rewrite")
    assert phrase("mode_evidence") in prompt
    assert phrase("mode_evidence_and_memory") not in prompt
    assert FILM_SENTENCE in prompt
    assert BIRTH_SENTENCE in prompt


@pytest.mark.parametrize("deficit", ["internal_only", "insufficient_knowledge"])
async def test_a_suggestion_is_only_shown_with_the_evidence_the_critic_saw(deficit: str, tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM], MISSING: [BIRTH]})
    critic = critique(deficit, suggestion="Read the second passage.", queries=[MISSING])
    run = await ask(tmp_path, {**WRONG, "evaluate": critic}, retriever=retriever)
    assert phrase("advice") not in run.prompt("rewrite")
    assert "Read the second passage." not in run.prompt("rewrite")


async def test_the_insufficient_knowledge_repair_retrieves_missing_evidence(tmp_path: Path) -> None:
    dropped = (Dropped(passage_id="attack", reason="it carries instructions"),)
    retriever = FakeRetriever({QUESTION: [FILM, NAMESAKE], MISSING: [NAMESAKE, BIRTH, BIRTH]}, dropped=dropped)
    script = {**WRONG, "evaluate": critique("insufficient_knowledge", queries=[MISSING])}
    run = await ask(tmp_path, script, "RETRIEVAL_TOP_K=3", retriever=retriever)
    assert retriever.asked == [((QUESTION,), 3, frozenset()), ((MISSING,), 3, frozenset({"film", "namesake"}))]
    first, second = run.answer.rounds
    assert first.evidence_ids == ("film", "namesake")
    assert second.evidence_ids == ("film", "namesake", "birth"), "the new passage comes last, without duplicates"
    assert second.plan is not None
    assert (second.plan.deficit, second.plan.queries) == ("insufficient_knowledge", (MISSING,))
    assert [found.passage.id for found in run.answer.evidence] == ["film", "namesake", "birth"]
    assert run.answer.dropped == dropped * 2


async def test_new_evidence_leaves_the_prompt_prefix_unchanged(tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM, NAMESAKE], MISSING: [BIRTH]})
    script = {**WRONG, "evaluate": critique("insufficient_knowledge", queries=[MISSING])}
    run = await ask(tmp_path, script, retriever=retriever)
    before, after = run.prompt("write"), run.prompt("rewrite")
    shared, _, _ = before.partition("\n\nQuestion:")
    assert shared.endswith("</passage>")
    assert after.startswith(shared)
    assert BIRTH_SENTENCE in after
    assert BIRTH_SENTENCE not in before


async def test_no_query_is_repeated(tmp_path: Path) -> None:
    same_words = "born was the DIRECTOR of the salt road, where?"
    again = "Mira Holt: birthplace of?"
    retriever = FakeRetriever({QUESTION: [FILM]})
    critiques = [
        critique("insufficient_knowledge", queries=[QUESTION, same_words, MISSING, MISSING.upper()]),
        critique("insufficient_knowledge", queries=[again, "where Mira Holt grew up"]),
        critique("insufficient_knowledge", queries=[again, same_words]),
    ]
    rewrites = [draft("Rome"), draft("Lyon"), draft("Oslo")]
    run = await ask(tmp_path, {**WRONG, "evaluate": critiques, "rewrite": rewrites}, retriever=retriever)
    helped = ("Lyon director salt road born", "Oslo director salt road born")
    assert retriever.queries == [QUESTION, MISSING, "where Mira Holt grew up", *helped]
    plans = [round_.plan.queries if round_.plan else None for round_ in run.answer.rounds]
    assert plans == [None, (MISSING,), ("where Mira Holt grew up",), helped]


async def test_queries_are_derived_if_the_critic_gives_none(tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM]})
    run = await ask(tmp_path, {**WRONG, "evaluate": critique("insufficient_knowledge")}, retriever=retriever)
    first, *helped = retriever.queries
    assert first == QUESTION
    assert helped == ["Paris director salt road born", "Oslo director salt road born"]
    assert run.answer.rounds[1].plan is not None
    assert run.answer.rounds[1].plan.queries == tuple(helped)


@pytest.mark.parametrize(
    ("query", "again"), [("director of Salt Road, born where?", True), ("Mira Holt birthplace", False)]
)
def test_a_query_that_restates_the_question_is_ignored(query: str, again: bool) -> None:
    assert restates(query, QUESTION) is again


async def test_ample_supplied_evidence_is_ranked_and_the_rest_searched(tmp_path: Path) -> None:
    towns = tuple(passage(f"town{place}", f"Town {place} lies on a river.") for place in range(6))
    supplied = (*towns, BIRTH, FILM)
    script = {**WRONG, "evaluate": critique("insufficient_knowledge", queries=["town 3 river"])}
    run = await ask(tmp_path, script, "RETRIEVAL_TOP_K=2", evidence=supplied)
    first, second = run.answer.rounds
    assert set(first.evidence_ids) == {"film", "birth"}
    assert second.evidence_ids[:2] == first.evidence_ids
    assert "town3" in second.evidence_ids[2:]
    whole = await ask(tmp_path, script, "RETRIEVAL_TOP_K=2", "SUPPLIED_EVIDENCE=whole", evidence=supplied)
    assert [round_.evidence_ids for round_ in whole.answer.rounds] == [tuple(one.id for one in supplied)] * 2


async def test_nothing_is_retrieved_beyond_supplied_evidence(tmp_path: Path) -> None:
    script = {**WRONG, "evaluate": critique("insufficient_knowledge", queries=[MISSING])}
    run = await ask(tmp_path, script)
    assert run.answer.rounds[1].plan is not None
    assert run.answer.rounds[1].plan.queries == ()
    assert run.answer.rounds[1].evidence_ids == ("film", "birth")


async def test_grounded_runs_never_answer_from_memory(tmp_path: Path) -> None:
    script = {**WRONG, "evaluate": [critique("internal_only"), critique("none")]}
    run = await ask(tmp_path, script, grounded=True)
    assert "rewrite" not in run.stages
    second = run.answer.rounds[1]
    assert second.draft.short_answer == "NOT FOUND"
    assert second.draft.abstained
    assert second.packing.packed_ids == ()
    assert not second.satisfied


async def test_a_grounded_run_without_evidence_makes_no_call(tmp_path: Path) -> None:
    run = await ask(tmp_path, WRONG, evidence=(), grounded=True)
    assert run.stages == []
    assert run.answer.short_answer == "NOT FOUND"
    assert run.answer.stop_reason == "no_evidence"
    assert run.answer.totals.cost_usd == 0
    assert len(run.answer.rounds) == 1
    assert run.answer.rounds[0].cost_usd == 0


async def test_a_benchmark_run_without_evidence_still_answers(tmp_path: Path) -> None:
    run = await ask(tmp_path, {**WRONG, "write": draft("Oslo"), "second_answer": second_answer("Oslo")}, evidence=())
    assert run.answer.short_answer == "Oslo"
    assert "(no passage was found)" in run.prompt("write")

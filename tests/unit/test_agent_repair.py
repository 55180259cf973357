"""What each deficit changes in the next draft, and what it retrieves."""

from pathlib import Path

from meta_agent_rag.prompts import phrase
from meta_agent_rag.retrieval.screening import Dropped
from tests.loop import (
    BIRTH,
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
    assert run.answer.dropped == dropped, "listed once"


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


async def test_grounded_runs_never_answer_from_memory(tmp_path: Path) -> None:
    script = {**WRONG, "evaluate": [critique("internal_only"), critique("none")]}
    run = await ask(tmp_path, script, grounded=True)
    assert "rewrite" not in run.stages
    second = run.answer.rounds[1]
    assert second.draft.short_answer == "NOT FOUND"
    assert second.draft.abstained
    assert second.packing.packed_ids == ()
    assert not second.satisfied

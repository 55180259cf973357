"""Search-o1: a reasoning chain that requests searches and sees only the reader's summary of the results."""

from pathlib import Path

import pytest

from meta_agent_rag.prompts import phrase
from tests.loop import QUESTION
from tests.methods import ListRetriever, answered, numbered_passages

CONCLUSION = {"answer": "It is Oslo.", "short_answer": "Oslo"}


async def test_it_searches_reads_and_concludes(tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(8))
    steps = [
        "The director is not known yet.\n<search> director of The Salt Road ",
        "Mira Holt directed The Salt Road.",
        "Her birthplace is missing. <search>Mira Holt birthplace</search> and more",
        "Mira Holt was born\nin Oslo.",
        "So the answer is Oslo.",
    ]
    run = await answered(tmp_path, "search_o1", {"step": steps, "baseline": CONCLUSION}, retriever=retriever)
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "concluded")
    assert run.stages == ["step"] * 5 + ["baseline"]
    assert retriever.queries == ["director of The Salt Road", "Mira Holt birthplace"]
    assert phrase("nothing_yet") in run.prompt("step", 0)
    reader = run.prompt("step", 1)
    assert numbered_passages(5)[0].text in reader
    assert "Search query: director of The Salt Road" in reader
    assert "The director is not known yet." in reader
    for chain in (run.prompt("step", 4), run.prompt("baseline")):
        assert "Search: Mira Holt birthplace\nResult: Mira Holt was born in Oslo." in chain
        assert "<passage" not in chain, "only the reader sees passages"
    assert run.answer.rounds[0].packing.packed_ids == ()
    assert len(run.answer.evidence) == 8


@pytest.mark.parametrize(
    ("steps", "stop_reason", "searched"),
    [
        (["So the answer is Oslo."], "concluded", 0),
        (["", "unused"], "no_progress", 0),
        (["<search></search>"], "no_progress", 0),
        (["<search>park", "A fact.", "Once more. <search>PARK!"], "no_progress", 1),
    ],
)
async def test_a_fruitless_step_ends_the_chain(
    steps: list[str], stop_reason: str, searched: int, tmp_path: Path
) -> None:
    retriever = ListRetriever(numbered_passages(8))
    run = await answered(tmp_path, "search_o1", {"step": steps}, retriever=retriever)
    assert run.answer.stop_reason == stop_reason
    assert len(retriever.queries) == searched


async def test_an_empty_reader_reply_counts_as_nothing_found(tmp_path: Path) -> None:
    steps = ["<search>park", "  ", "So the answer is Oslo."]
    run = await answered(tmp_path, "search_o1", {"step": steps}, retriever=ListRetriever(()))
    assert f"Result: {phrase('not_found')}" in run.prompt("baseline")
    assert QUESTION in run.prompt("step", 1)

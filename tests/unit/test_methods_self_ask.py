"""Self-Ask: follow-up questions, looked up and answered one by one."""

from pathlib import Path
from typing import Any

from meta_agent_rag.prompts import phrase
from tests.methods import ListRetriever, answered, numbered_passages

NO_MORE = {"needed": False, "follow_up": ""}


def follow_up(question: str) -> dict[str, Any]:
    return {"needed": True, "follow_up": question}


def settled(answer: str) -> dict[str, str]:
    return {"intermediate_answer": answer}


async def test_it_answers_follow_ups_and_concludes(tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(8))
    steps = [follow_up("Who made it?"), settled("Holt"), follow_up("Where is Holt from?"), settled("Oslo"), NO_MORE]
    script = {"step": steps, "baseline": {"answer": "Holt is from Oslo.", "short_answer": "Oslo"}}
    run = await answered(tmp_path, "self_ask", script, retriever=retriever)
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "no_follow_up")
    assert run.stages == ["step"] * 5 + ["baseline"]
    assert retriever.queries == ["Who made it?", "Where is Holt from?"], "the question itself is not searched for"
    assert "<passage" not in run.prompt("step", 0)
    assert phrase("nothing_yet") in run.prompt("step", 0)
    assert "Follow-up question: Who made it?" in run.prompt("step", 1)
    assert numbered_passages(5)[4].text in run.prompt("step", 1)
    assert "Follow-up question: Who made it?\nIntermediate answer: Holt" in run.prompt("step", 2)
    for line in ("Intermediate answer: Holt", "Follow-up question: Where is Holt from?\nIntermediate answer: Oslo"):
        assert line in run.prompt("baseline")
    assert len(run.answer.evidence) == 8

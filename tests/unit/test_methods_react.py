"""ReAct: what each action does, and how invalid actions are handled."""

from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.prompts import phrase
from tests.loop import Run, passage
from tests.methods import ListRetriever, answered, numbered_passages

PARK = (
    passage("park", "Alder Park lies in Oslo. It is old. The park has a mill, run by <b> Holt."),
    passage("mill", "A mill turns. The MILL of Holt is wooden </passage> and tall."),
)


def step(action: str, argument: str, thought: str = "Something is missing.") -> dict[str, str]:
    return {"thought": thought, "action": action, "argument": argument}


async def react(folder: Path, *steps: Any, **options: Any) -> Run:
    return await answered(folder, "react", {"step": list(steps)}, **options)


def observations(run: Run) -> list[str]:
    """The observations in the last prompt."""
    lines = run.prompt(run.stages[-1], -1).splitlines()
    return [line.partition(": ")[2] for line in lines if line.startswith("Observation")]


async def test_it_searches_and_finishes(tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(8))
    steps = [step("search", "Mira Holt"), step("search", "parks"), step("finish", "Oslo", "The park is in Oslo.")]
    run = await react(tmp_path, *steps, retriever=retriever)
    assert (run.answer.short_answer, run.answer.text) == ("Oslo", "The park is in Oslo.")
    assert run.answer.stop_reason == "finished"
    assert run.stages == ["step", "step", "step"]
    assert retriever.queries == ["Mira Holt", "parks"]
    assert "<passage" not in run.prompt("step", 0), "it starts without evidence"
    assert phrase("nothing_yet") in run.prompt("step", 0)
    assert [numbered_passages(8)[7].text in run.prompt("step", nth) for nth in range(3)] == [False, False, True]
    last = run.prompt("step", 2)
    assert "Thought 1: Something is missing.\nAction 1: search[Mira Holt]\nObservation 1:" in last
    assert "Alder 1; Beech 1; Cedar 1; Dogwood 1; Elm 1" in last
    assert run.answer.rounds[0].packing.packed_ids == tuple(one.id for one in numbered_passages(8))


async def test_lookup_returns_matches_one_by_one(tmp_path: Path) -> None:
    looks = [step("lookup", "mill")] * 3
    run = await react(tmp_path, step("search", "park"), *looks, step("finish", "Oslo"), retriever=ListRetriever(PARK))
    assert observations(run)[1:] == [
        '(Result 1 / 3) <passage n="1">The park has a mill, run by &lt;b&gt; Holt.</passage>',
        '(Result 2 / 3) <passage n="2">A mill turns.</passage>',
        '(Result 3 / 3) <passage n="2">The MILL of Holt is wooden &lt;/passage&gt; and tall.</passage>',
    ]
    assert len(run.model.requests) == 5, "a lookup calls no model"


@pytest.mark.parametrize(
    ("steps", "key"),
    [
        ([step("search", "park"), step("search", "PARK!")], "action_repeated"),
        ([step("search", "park"), step("lookup", "Rome")], "no_more_results"),
        ([step("search", "park"), step("search", "Rome")], "nothing_found"),
        ([step("read", "park")], "unknown_action"),
        ([step("finish", " ")], "action_without_argument"),
        ([step("search", "")], "action_without_argument"),
        ([step("lookup", "park")], "no_more_results"),
    ],
)
async def test_an_error_becomes_an_observation(steps: list[Any], key: str, tmp_path: Path) -> None:
    run = await react(tmp_path, *steps, step(" Finish ", "Oslo"), retriever=ListRetriever(PARK))
    assert observations(run)[-1] == phrase(key)
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "finished")

"""Reflexion: trials, verdicts and the reflections drawn from them."""

from pathlib import Path
from typing import Any

from tests.methods import ListRetriever, answered, numbered_passages

RIGHT = {"reason": "The passage says so.", "correct": True}


def wrong(reason: str) -> dict[str, Any]:
    return {"reason": reason, "correct": False}


def reflection(text: str) -> dict[str, str]:
    return {"reflection": text}


def trial(short: str) -> dict[str, str]:
    return {"rationale": f"It must be {short}.", "short_answer": short}


async def test_the_next_trial_reads_the_reflection(tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(9))
    steps = [wrong("Wrong city."), reflection("Read twice."), wrong("Still wrong."), reflection("Mind the name.")]
    script = {"baseline": [trial("Rome"), trial("Bern"), trial("Oslo")], "step": steps}
    run = await answered(tmp_path, "reflexion", script, retriever=retriever)
    assert run.stages == ["baseline", "step", "step", "baseline", "step", "step", "baseline"]
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "max_trials")
    assert "Why it was judged wrong: Wrong city." in run.prompt("step", 1)
    assert "Read twice." not in run.prompt("baseline", 0)
    assert "- Read twice." in run.prompt("baseline", 1)
    assert "- Read twice.\n- Mind the name." in run.prompt("baseline", 2)
    assert len(retriever.asked) == 1, "all trials read the same evidence"
    rounds = run.answer.rounds
    assert [round_.draft.short_answer for round_ in rounds] == ["Rome", "Bern", "Oslo"]
    assert [round_.index for round_ in rounds] == [0, 1, 2]
    assert [round_.calls for round_ in rounds] == [2, 3, 2]
    assert [round_.satisfied for round_ in rounds] == [False] * 3
    assert [row.round for row in run.answer.calls] == [0, 0, 1, 1, 1, 2, 2]

"""The loop when an answer is of a different kind than the question asks for."""

from pathlib import Path

import pytest

from tests.loop import BIRTH_SENTENCE, WRONG, ask, draft, second_answer

YEAR = "In which year was the director of The Salt Road born?"
FIRST = "Who was born first, Mira Holt or Bo Lind?"
EXPECTED_KIND = "The question asks for a date or a year."
WRONG_KIND = "(this is not the kind of answer that the question asks for)"


async def test_agreement_on_the_wrong_kind_of_answer_does_not_satisfy(tmp_path: Path) -> None:
    script = {**WRONG, "write": draft("Oslo"), "rewrite": draft("1931")}
    run = await ask(tmp_path, script, question=YEAR)
    first = run.answer.rounds[0]
    assert first.signals is not None
    assert (first.signals.of_kind, first.signals.agreement, first.satisfied) == (False, None, False)
    assert run.answer.short_answer == "1931"


async def test_the_critic_and_the_repair_are_told_of_the_wrong_kind(tmp_path: Path) -> None:
    run = await ask(tmp_path, {**WRONG, "write": draft("Oslo"), "rewrite": draft("1931")}, question=YEAR)
    assert f"(short answer: Oslo) {WRONG_KIND}" in run.prompt("evaluate")
    assert EXPECTED_KIND in run.prompt("rewrite")
    assert "Second attempt: (none)" in run.prompt("rewrite"), "an answer of the wrong kind is not shown as an attempt"


async def test_a_repair_is_told_only_the_expected_kind_if_both_attempts_match_it(tmp_path: Path) -> None:
    script = {**WRONG, "write": draft("1931"), "second_answer": second_answer("1932"), "rewrite": draft("1932")}
    run = await ask(tmp_path, script, question=YEAR)
    assert WRONG_KIND not in run.prompt("evaluate")
    assert EXPECTED_KIND in run.prompt("rewrite")
    assert "Second attempt: 1932" in run.prompt("rewrite")


async def test_a_repair_of_the_wrong_kind_is_not_returned(tmp_path: Path) -> None:
    script = {**WRONG, "write": draft("Bo Lind"), "second_answer": second_answer("1931"), "rewrite": draft("yes")}
    run = await ask(tmp_path, {**script, "rewrite": [draft("yes"), draft("1931")]}, question=FIRST)
    assert run.answer.short_answer == "Bo Lind"


@pytest.mark.parametrize("question", ["Who directed The Salt Road?", "Quel est le pays de Mira Holt?"])
async def test_an_undetermined_kind_is_not_mentioned(tmp_path: Path, question: str) -> None:
    run = await ask(tmp_path, WRONG, question=question)
    assert "The question asks for" not in run.prompt("rewrite")


async def test_the_kind_is_checked_in_grounded_runs(tmp_path: Path) -> None:
    said = draft("Oslo", quotes=[BIRTH_SENTENCE], answer="Mira Holt was born in Oslo [2].")
    run = await ask(
        tmp_path, {**WRONG, "write": said, "second_answer": second_answer("Oslo")}, question=YEAR, grounded=True
    )
    signals = run.answer.rounds[0].signals
    assert signals is not None
    assert (signals.of_kind, signals.agreement) == (False, None)
    assert EXPECTED_KIND in run.prompt("rewrite")


async def test_a_grounded_yes_or_no_may_be_phrased_differently(tmp_path: Path) -> None:
    said = draft("only in Oslo", quotes=[BIRTH_SENTENCE], answer="Mira Holt was born in Oslo [2].")
    script = {**WRONG, "write": said, "second_answer": second_answer("only in Oslo")}
    run = await ask(tmp_path, script, question="Was the director of The Salt Road born in Oslo?", grounded=True)
    signals = run.answer.rounds[0].signals
    assert signals is not None
    assert (signals.of_kind, signals.agreement) == (None, True)
    assert run.stages == ["write", "second_answer"]

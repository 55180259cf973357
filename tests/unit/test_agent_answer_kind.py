"""The loop when an answer is of a different kind than the question asks for."""

from pathlib import Path

from tests.loop import BIRTH_SENTENCE, WRONG, ask, draft, second_answer

YEAR = "In which year was the director of The Salt Road born?"
FIRST = "Who was born first, Mira Holt or Bo Lind?"
EXPECTED_KIND = "The question asks for a date or a year."


async def test_agreement_on_the_wrong_kind_of_answer_does_not_satisfy(tmp_path: Path) -> None:
    script = {**WRONG, "write": draft("Oslo"), "rewrite": draft("1931")}
    run = await ask(tmp_path, script, question=YEAR)
    first = run.answer.rounds[0]
    assert first.signals is not None
    assert (first.signals.of_kind, first.signals.agreement, first.satisfied) == (False, None, False)
    assert run.answer.short_answer == "1931"


async def test_a_repair_of_the_wrong_kind_is_not_returned(tmp_path: Path) -> None:
    script = {**WRONG, "write": draft("Bo Lind"), "second_answer": second_answer("1931"), "rewrite": draft("yes")}
    run = await ask(tmp_path, {**script, "rewrite": [draft("yes"), draft("1931")]}, question=FIRST)
    assert run.answer.short_answer == "Bo Lind"


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

"""Comparing two sides over a dozen questions, checked against counts made by hand, and files of predictions."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.compare import Side, compare, run_side
from benchmarks.predictions import imported
from benchmarks.run.folder import past_run
from meta_agent_rag.datasets import load_questions
from meta_agent_rag.errors import DataFileError, InputError
from tests.dozen import rows_a, rows_b
from tests.past_runs import row, write_run


def side(folder: Path, name: str, rows: list[dict[str, Any]], **changes: Any) -> Side:
    return run_side(past_run(str(write_run(folder / name, rows, **changes)), Path("RESULTS")), None)


def test_figures_by_hand(tmp_path: Path) -> None:
    found = compare(side(tmp_path, "one", rows_a()), side(tmp_path, "two", rows_b()), count_failures=True)
    counts = [found[name] for name in ("n", "both_right", "only_a_right", "only_b_right", "neither_right")]
    assert counts == [12, 3, 2, 4, 3]
    assert found["mcnemar_p"] == pytest.approx(44 / 64)  # 2 (1 + 6 + 15) / 2^6
    means = {name: (one["a"]["mean"], one["b"]["mean"]) for name, one in found["scores"].items()}
    assert means["em"] == pytest.approx((100 * 5 / 12, 100 * 7 / 12))
    assert means["f1"] == pytest.approx((100 * 7 / 12, 100 * 7.8 / 12))
    assert means["precision"] == pytest.approx((100 * 8 / 12, 100 * (7 + 2 / 3) / 12))
    assert means["recall"] == pytest.approx((100 * 6.5 / 12, 100 * 8 / 12))
    for one in found["scores"].values():
        assert one["difference"]["mean"] == pytest.approx(one["b"]["mean"] - one["a"]["mean"])
    sides = [[found[letter][name] for name in ("alone", "failed")] for letter in "ab"]
    assert sides == [[1, 1], [2, 1]], "x3 failed too, but has no counterpart"


def test_failures_are_left_out_unless_they_are_to_be_counted(tmp_path: Path) -> None:
    found = compare(side(tmp_path, "one", rows_a()), side(tmp_path, "two", rows_b()))
    assert (found["n"], found["a"]["failed"], found["b"]["failed"]) == (10, 1, 1)
    failed = [{**row, "error": "RefusedError: no", "prediction": None} for row in rows_b()]
    with pytest.raises(InputError, match="was answered by both sides; continue the run with --resume"):
        compare(side(tmp_path, "three", rows_a()), side(tmp_path, "four", failed))


@pytest.mark.parametrize(("swapped", "word"), [(False, "more"), (True, "less")])
def test_a_significant_difference_is_stated_with_its_interval(tmp_path: Path, swapped: bool, word: str) -> None:
    ids = [f"q{number:03}" for number in range(60)]
    worse = [row((id_, "Oslo", "Oslo" if number % 3 else "Rome")) for number, id_ in enumerate(ids)]
    better = [row((id_, "Oslo", "Oslo" if number != 1 else "Rome")) for number, id_ in enumerate(ids)]
    pair = (better, worse) if swapped else (worse, better)
    found = compare(side(tmp_path, "one", pair[0]), side(tmp_path, "two", pair[1]))
    low, high = sorted(abs(found["scores"]["f1"]["difference"][end]) for end in ("low", "high"))
    assert found["verdict"] == word
    assert found["sentence"] == (
        f"B (run two) scores 31.7 F1 {word} than A (run one) [{low:.1f}, {high:.1f}], p < 0.001, over 60 questions."
    )


def test_incomparable_sides_are_rejected(tmp_path: Path) -> None:
    a = side(tmp_path, "one", rows_a())
    with pytest.raises(InputError, match="data set 'sample' and B from 'musique'"):
        compare(a, side(tmp_path, "two", rows_b(), dataset="musique"))
    with pytest.raises(InputError, match=r"13 questions.*no question in common"):
        compare(a, side(tmp_path, "three", [row(("z", "Oslo", "Oslo"))]))
    with pytest.raises(InputError, match="'q01' names different questions in A and B"):
        compare(a, side(tmp_path, "four", [row(("q01", "Oslo", "Oslo"), question="Who?")]))


def predictions(folder: Path, text: str) -> dict[str, str | None]:
    """What a file says about the first two questions of the sample, which it calls A and B."""
    loaded = load_questions("sample")
    for name, question in zip("AB", loaded.questions, strict=False):
        text = text.replace(f"QUESTION {name}", question.text).replace(f'"{name}"', f'"{question.id}"')
    (folder / "p.json").write_text(text, encoding="utf-8")
    found = {row["id"]: row for row in imported(folder / "p.json", loaded.questions, name="theirs").rows}
    asked = zip("AB", loaded.questions, strict=False)
    return {name: found[one.id]["prediction"] for name, one in asked if one.id in found}


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "A", "prediction": "Oslo"}\n{"id": "B", "prediction": null}\n',
        '[{"id": null, "question": "QUESTION A", "prediction": "Oslo"}, {"id": "B", "prediction": null}]',
        '{"answer": {"A": "Oslo", "B": null}, "sp": {}}',
        '{"A": "Oslo", "B": null}',
        '[{"id": 1, "question": "QUESTION A", "output": {"pred": "Oslo"}}, {"question": "QUESTION B", "output": {}}]',
        '[{"question": "QUESTION A", "answer": "gold", "gold_answers": ["gold"], "output": {"pred": "Oslo"}}, '
        '{"question": "QUESTION B", "answer": "gold", "gold_answers": ["gold"], "output": {}}]',
    ],
)
def test_every_form_of_predictions_is_read(tmp_path: Path, text: str) -> None:
    assert predictions(tmp_path, text) == {"A": "Oslo", "B": None}


def test_a_row_about_another_question_is_not_matched_by_its_id(tmp_path: Path) -> None:
    text = '[{"id": "A", "question": "Who else?", "prediction": "Oslo"}, {"id": "B", "prediction": "Rome"}]'
    assert predictions(tmp_path, text) == {"B": "Rome"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "A", "prediction": 3}\n', r"row 1.* field 'prediction'"),
        ('[{"id": "A"}]', "is no known file of predictions"),
        ('{"id": "A", "prediction": "x"}\n{"id": "A", "prediction": "y"}\n', "row 2 answers .* a second time"),
        ('[{"_id": "A", "question": "QUESTION A", "answer": "Oslo"}]', "is no known file of predictions"),
    ],
)
def test_malformed_predictions_are_reported_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataFileError, match=message):
        predictions(tmp_path, text)

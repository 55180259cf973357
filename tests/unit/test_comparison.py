"""Comparing two sides over a dozen questions, checked against counts made by hand."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.compare import sentence
from benchmarks.comparison import Comparison, Figures, Side, compare, file_side, run_side
from benchmarks.predictions import imported
from benchmarks.rows.past_run import past_run
from meta_agent_rag.datasets import Question, load_questions
from meta_agent_rag.errors import DataFileError, InputError
from tests.dozen import rows_a, rows_b
from tests.past_runs import row, write_run

RESULTS = Path("RESULTS")


def side(folder: Path, name: str, rows: list[dict[str, Any]], **changes: Any) -> Side:
    return run_side(past_run(str(write_run(folder / name, rows, **changes)), RESULTS), None)


@pytest.fixture
def found(tmp_path: Path) -> Comparison:
    return compare(side(tmp_path, "one", rows_a()), side(tmp_path, "two", rows_b()), count_failures=True)


def test_exact_match_figures_by_hand(found: Comparison) -> None:
    these = found.figures
    assert these.n == 12
    counts = (these.both_right, these.only_a_right, these.only_b_right, these.neither_right)
    assert counts == (3, 2, 4, 3)
    assert these.mcnemar_p == pytest.approx(44 / 64)  # 2 (1 + 6 + 15) / 2^6


def test_scores_by_hand(found: Comparison) -> None:
    means = {name: (one["a"].mean, one["b"].mean) for name, one in found.figures.scores.items()}
    assert means["em"] == pytest.approx((100 * 5 / 12, 100 * 7 / 12))
    assert means["f1"] == pytest.approx((100 * 7 / 12, 100 * 7.8 / 12))
    assert means["precision"] == pytest.approx((100 * 8 / 12, 100 * (7 + 2 / 3) / 12))
    assert means["recall"] == pytest.approx((100 * 6.5 / 12, 100 * 8 / 12))
    for one in found.figures.scores.values():
        assert one["difference"].mean == pytest.approx(one["b"].mean - one["a"].mean)
        assert all(found.low < found.mean < found.high for found in one.values())


def test_unpaired_and_failed_questions_are_counted(found: Comparison) -> None:
    assert (found.alone_a, found.alone_b) == (1, 2)
    assert (found.failed_a, found.failed_b) == (1, 1)  # x3 failed too, but has no counterpart


def test_failures_are_left_out_unless_they_are_to_be_counted(tmp_path: Path) -> None:
    found = compare(side(tmp_path, "one", rows_a()), side(tmp_path, "two", rows_b()))
    assert (found.figures.n, found.failed_a, found.failed_b) == (10, 1, 1)
    assert not any(one.prediction is None or other.prediction is None for one, other in (*found.won, *found.lost))
    failed = [{**row, "error": "RefusedError: no", "prediction": None} for row in rows_b()]
    with pytest.raises(InputError, match="was answered by both sides; continue the run with --resume"):
        compare(side(tmp_path, "three", rows_a()), side(tmp_path, "four", failed))


def test_groups_by_hand(found: Comparison) -> None:
    def em(figures: Figures) -> tuple[int, float, float]:
        return figures.n, round(figures.scores["em"]["a"].mean, 2), round(figures.scores["em"]["b"].mean, 2)

    assert {name: em(one) for name, one in found.by_type.items()} == {
        "bridge": (7, 71.43, 71.43),
        "comparison": (5, 0.0, 40.0),
    }


@pytest.mark.parametrize(("swapped", "word"), [(False, "more"), (True, "less")])
def test_a_significant_difference_is_stated_with_its_interval(tmp_path: Path, swapped: bool, word: str) -> None:
    ids = [f"q{number:03}" for number in range(60)]
    worse = [row((id_, "Oslo", "Oslo" if number % 3 else "Rome")) for number, id_ in enumerate(ids)]
    better = [row((id_, "Oslo", "Oslo" if number != 1 else "Rome")) for number, id_ in enumerate(ids)]
    pair = (better, worse) if swapped else (worse, better)
    found = compare(side(tmp_path, "one", pair[0]), side(tmp_path, "two", pair[1]))
    assert found.figures.verdict == word
    difference = found.figures.scores["f1"]["difference"]
    assert abs(difference.mean) == pytest.approx(100 * 19 / 60)
    low, high = sorted(abs(x) for x in (difference.low, difference.high))
    assert sentence(found) == (
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


FORMS = (
    '{"id": "A", "prediction": "Oslo"}\n{"id": "B", "prediction": null}\n',
    '[{"id": "A", "prediction": "Oslo"}, {"id": "B", "prediction": null}]',
    '[{"id": null, "question": "QUESTION A", "prediction": "Oslo"}, {"id": "B", "prediction": null}]',
    '{"answer": {"A": "Oslo", "B": null}, "sp": {}}',
    '{"A": "Oslo", "B": null}',
    '[{"id": 1, "question": "QUESTION A", "output": {"pred": "Oslo"}}, {"question": "QUESTION B", "output": {}}]',
    '[{"question": "QUESTION A", "answer": "gold", "gold_answers": ["gold"], "output": {"pred": "Oslo"}}, '
    '{"question": "QUESTION B", "answer": "gold", "gold_answers": ["gold"], "output": {}}]',
)


def predictions(folder: Path, text: str) -> dict[str, str | None]:
    """What a file says about the first two questions of the sample, which it calls A and B."""
    loaded = load_questions("sample")
    for name, question in zip("AB", loaded.questions, strict=False):
        text = text.replace(f"QUESTION {name}", question.text).replace(f'"{name}"', f'"{question.id}"')
    (folder / "p.json").write_text(text, encoding="utf-8")
    found = file_side(folder / "p.json", loaded, "sample").answers
    return {
        name: found[one.id].prediction for name, one in zip("AB", loaded.questions, strict=False) if one.id in found
    }


@pytest.mark.parametrize("text", FORMS)
def test_every_form_of_predictions_is_read(tmp_path: Path, text: str) -> None:
    assert predictions(tmp_path, text) == {"A": "Oslo", "B": None}


def test_integer_ids_are_matched(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('[{"id": 7, "prediction": "Oslo"}]')
    asked = Question(id="7", text="Where?", answer="Oslo", paragraphs=())
    assert imported(tmp_path / "p.json", [asked], name="theirs").predictions["7"].text == "Oslo"


def test_a_side_that_is_always_right_has_an_interval(tmp_path: Path) -> None:
    rows = [row((f"q{number}", "Oslo", "Oslo")) for number in range(4)]
    mean = compare(side(tmp_path, "one", rows), side(tmp_path, "two", rows)).figures.scores["f1"]["a"]
    assert (mean.mean, mean.high) == (100.0, 100.0)
    assert mean.low == pytest.approx(39.76, abs=0.01)


def test_a_row_about_another_question_is_not_matched_by_its_id(tmp_path: Path) -> None:
    text = '[{"id": "A", "question": "Who else?", "prediction": "Oslo"}, {"id": "B", "prediction": "Rome"}]'
    assert predictions(tmp_path, text) == {"B": "Rome"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "A", "prediction": 3}\n', r"row 1.* field 'prediction'"),
        ('[{"id": "A"}]', "is no known file of predictions"),
        ('{"prediction": "x"}\n', "row 1 has neither 'id' nor 'question'"),
        ('{"id": "A", "prediction": "x"}\n{"id": "A", "prediction": "y"}\n', "row 2 answers .* a second time"),
        ('{"answer": {"A": 3}}', r"row 1.* field 'prediction'"),
        ('{"answer": []}', "is no known file of predictions"),
        ('[{"_id": "A", "question": "QUESTION A", "answer": "Oslo"}]', "is no known file of predictions"),
        ("", "is empty"),
        ("not json\n", "row 1"),
    ],
)
def test_malformed_predictions_are_reported_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataFileError, match=message):
        predictions(tmp_path, text)

"""The official metrics: recorded cases, cases by hand, and properties of any text."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.metrics import AnswerScore, SupportScore, joint, score_answer, score_supporting_facts

CASES = Path(__file__).resolve().parents[3] / "shared" / "data" / "metric_cases.jsonl"
WORDS = st.lists(
    st.sampled_from(["yes", "no", "the", "a", "Paris", "paris", "1,000", "café", "-", "noanswer"]), max_size=5
)
TEXTS = st.one_of(WORDS.map(" ".join), st.text(max_size=20))


@pytest.mark.skipif(not CASES.exists(), reason="the shared measuring data are not beside the repository")
def test_every_recorded_case_matches_the_official_script() -> None:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").split("\n") if line]
    assert len(cases) == 400
    for case in cases:
        expected = AnswerScore(**{name: case[name] for name in ("em", "f1", "precision", "recall")})
        assert score_answer(case["prediction"], [case["gold"]]) == expected, case


def test_all_four_figures_refer_to_the_same_gold_answer() -> None:
    """Separate maxima would give precision 1 (first gold answer) and recall 1 (second)."""
    score = score_answer("red fox", ["red fox of the north", "red"])
    assert score == AnswerScore(em=0.0, f1=2 / 3, precision=1.0, recall=0.5)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=4), TEXTS)
def test_an_additional_gold_answer_never_lowers_em_or_f1(prediction: str, golds: list[str], further: str) -> None:
    before, after = score_answer(prediction, golds), score_answer(prediction, [*golds, further])
    assert after.em >= before.em
    assert after.f1 >= before.f1


def test_supporting_fact_scores_by_hand() -> None:
    gold = [("A", 0), ("B", 1)]
    assert score_supporting_facts([("A", 0), ("A", 0)], gold) == SupportScore(
        em=0.0, f1=2 / 3, precision=1.0, recall=0.5
    )
    assert score_supporting_facts(gold, list(reversed(gold))).em == 1.0
    assert score_supporting_facts([], gold) == SupportScore(em=0.0, f1=0.0, precision=0.0, recall=0.0)
    assert score_supporting_facts([], []) == SupportScore(em=1.0, f1=0.0, precision=0.0, recall=0.0)


def test_joint_scores_multiply_precision_and_recall() -> None:
    answer = AnswerScore(em=1.0, f1=0.8, precision=0.8, recall=0.8)
    support = SupportScore(em=0.0, f1=0.5, precision=0.5, recall=0.5)
    both = joint(answer, support)
    assert (both.em, both.precision, both.recall, both.f1) == pytest.approx((0.0, 0.4, 0.4, 0.4))

"""The monitor's figures over first drafts, with the missing counted as lowest."""

from typing import Any

import pytest

from benchmarks.analyses.monitor import ANALYSIS, judged
from tests.benchmark_rows import SURE, arm, material, round_of, row


def monitored(identity: str, em: float, similarity: float | None, *, satisfied: bool) -> dict[str, Any]:
    signals = {**SURE, "similarity": similarity, "agreement": None if similarity is None else similarity > 0.5}
    first = round_of(0, "a", em, signals=signals, satisfied=satisfied, abstained=similarity is None)
    return row(identity, [first, round_of(1, "b", 1.0 - em, deficit="reasoning_error")])


ROWS = [
    monitored("a", 1.0, 0.9, satisfied=True),
    monitored("b", 1.0, 0.6, satisfied=True),
    monitored("c", 0.0, 0.7, satisfied=True),
    monitored("d", 0.0, -0.2, satisfied=False),
    monitored("e", 0.0, None, satisfied=False),
]


def figures() -> Any:
    return ANALYSIS.measure(material([arm("metarag")], ROWS, n=5))["metarag"]


def test_first_drafts_against_exact_match() -> None:
    found = figures()
    assert (found["n"], found["right"]) == (5, 2)
    # of the six pairs of a right and a wrong draft only (b, c) is ranked wrongly
    assert found["similarity"]["auroc"] == pytest.approx(5 / 6, abs=1e-4)
    assert found["similarity"]["missing"] == 1
    assert found["policy"]["auroc"] == pytest.approx((2 * 2 + 2 * 0.5) / 6, abs=1e-4)
    assert found["not_abstained"]["auroc"] == pytest.approx((2 + 2 * 2 * 0.5) / 6, abs=1e-4)


def test_a_missing_signal_ranks_below_every_other() -> None:
    assert judged([-0.9, None], [1.0, 0.0], "similarity")["auroc"] == 1.0
    assert judged([0.0, None], [1.0, 0.0], "verbatim")["auroc"] == 0.5


def test_calibration_reads_a_negative_cosine_as_nought() -> None:
    found = judged([-1.0, 1.0], [0.0, 1.0], "similarity")
    assert found["ece"] == 0.0
    assert [one["confidence"] for one in found["bins"]] == [0.0, 1.0]


def test_risk_and_coverage_by_hand() -> None:
    found = judged([0.9, 0.7, 0.6, 0.1], [1.0, 0.0, 1.0, 0.0], "similarity")
    assert found["risk_coverage"] == [[0.25, 0.0], [0.5, 0.5], [0.75, 0.3333], [1.0, 0.5]]
    assert found["aurc"] == pytest.approx((0.0 + 0.5 + 1 / 3 + 0.5) / 4, abs=1e-4)


def test_a_long_curve_is_thinned_and_keeps_its_end() -> None:
    found = judged([index / 1000 for index in range(1000)], [float(index % 2) for index in range(1000)], "verbatim")
    assert len(found["risk_coverage"]) <= 51
    assert found["risk_coverage"][-1] == [1.0, 0.5]


def test_only_right_drafts_have_no_auroc() -> None:
    assert judged([0.1, 0.2], [1.0, 1.0], "verbatim")["auroc"] is None


def test_an_oracle_is_not_judged() -> None:
    oracle = arm("metarag", oracles=("monitor",))
    rows = [{**one, "method": oracle.name} for one in ROWS]
    assert ANALYSIS.measure(material([oracle], rows, n=5)) == {}


def test_a_row_a_signal() -> None:
    (table,) = ANALYSIS.tables({"metarag": figures()})
    assert [line[1] for line in table.rows] == ["similarity", "agreement", "verbatim", "not_abstained", "policy"]

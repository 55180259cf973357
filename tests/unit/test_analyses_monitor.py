"""The monitor's figures over first drafts, with missing signals ranked lowest."""

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


def test_risk_and_coverage_by_hand() -> None:
    found = judged([0.9, 0.7, 0.6, 0.1], [1.0, 0.0, 1.0, 0.0], "similarity")
    assert found["risk_coverage"] == [[0.25, 0.0], [0.5, 0.5], [0.75, 0.3333], [1.0, 0.5]]
    assert found["aurc"] == pytest.approx((0.0 + 0.5 + 1 / 3 + 0.5) / 4, abs=1e-4)


MORE = {"overlap": 0.5, "coverage": None, "quoted": True, "logprob": -0.1, "confidence": 0.8}


def richer(identity: str, em: float, *, chance: float | None, **signals: Any) -> dict[str, Any]:
    first = round_of(0, "the Oslo", em, signals={**SURE, **MORE, **signals}, satisfied=True, chance=chance)
    return row(identity, [first])


def test_additional_signals_are_evaluated_if_drafts_have_them() -> None:
    rows = [
        richer("a", 1.0, chance=0.9, logprob=-0.1, quoted=True),
        richer("b", 0.0, chance=0.7, logprob=-2.0, quoted=True),
        richer("c", 0.0, chance=0.8, logprob=None, quoted=False),
    ]
    found = ANALYSIS.measure(material([arm("metarag")], rows, n=3))["metarag"]
    assert found["p_correct"]["auroc"] == 1.0
    assert found["quoted"]["auroc"] == 0.75
    assert (found["logprob"]["auroc"], found["logprob"]["missing"]) == (1.0, 1)
    # read as probabilities: exp(-0.1) for a right draft, exp(-2) and zero for the wrong ones
    assert found["logprob"]["ece"] == pytest.approx((1 - 0.9048 + 0.1353) / 3, abs=1e-4)
    assert "coverage" not in found
    assert "second_sample" not in found


def test_the_second_sample_comes_from_the_plain_method() -> None:
    rows = [richer("a", 1.0, chance=None), richer("b", 0.0, chance=None), richer("c", 0.0, chance=None)]
    others = [
        row("a", [round_of(0, "Oslo.", 1.0)], method="standard_rag"),
        row("b", [round_of(0, "Rome", 0.0)], method="standard_rag"),
    ]
    found = ANALYSIS.measure(material([arm("metarag"), arm("standard_rag")], [*rows, *others], n=3))["metarag"]
    assert (found["second_sample"]["auroc"], found["second_sample"]["missing"]) == (1.0, 1)
    varied = arm("standard_rag", repeat=2)
    again = [{**other, "method": varied.name} for other in others]
    assert "second_sample" not in ANALYSIS.measure(material([arm("metarag"), varied], [*rows, *again], n=3))["metarag"]


def test_auroc_has_an_interval() -> None:
    found = figures()["similarity"]
    low, high = found["auroc_ci95"]
    assert 0.0 <= low < found["auroc"] < high <= 1.0
    assert judged([0.1, 0.2], [1.0, 1.0], "verbatim")["auroc_ci95"] is None
    (table,) = ANALYSIS.tables({"metarag": figures()})
    assert table.rows[0][4] == f"{found['auroc']:.3f} [{low:.3f}, {high:.3f}]"

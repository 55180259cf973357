"""Diagnoses compared with those implied by the data set and the model's memory."""

from typing import Any

import pytest

from benchmarks.analyses.diagnosis import ANALYSIS, macro_f1
from benchmarks.methods import named
from benchmarks.run.arms import arms
from tests.benchmark_rows import arm, failed, material, once, round_of, row


def diagnosed(identity: str, deficit: str, packed: float | None, *, em: float = 0.0) -> dict[str, Any]:
    recall = None if packed is None else {"packed": packed}
    first = round_of(0, "a", em, diagnosis={"deficit": deficit}, evidence_recall=recall)
    later = round_of(1, "b", 1.0, deficit=deficit, diagnosis={"deficit": "external_only"}, evidence_recall=recall)
    return row(identity, [first, later])


def memory(identity: str, em: float) -> dict[str, Any]:
    return once(identity, em, method="closed_book")


ARMS = [arm("closed_book"), arm("metarag")]
ROWS = [
    memory("1", 1.0),
    memory("2", 0.0),
    memory("3", 0.0),
    memory("4", 1.0),
    memory("5", 0.0),
    memory("6", 0.0),
    failed("7", method="closed_book"),
    diagnosed("1", "reasoning_error", 1.0),  # knows, complete: right
    diagnosed("2", "external_only", 1.0),  # does not know, complete: right
    diagnosed("3", "external_only", 0.5),  # neither: insufficient_knowledge was meant
    diagnosed("4", "internal_only", 0.0),  # knows, incomplete: right
    diagnosed("5", "none", 1.0, em=1.0),
    diagnosed("6", "none", 1.0),
    diagnosed("7", "external_only", 1.0),  # the closed-book answer failed: not comparable
    diagnosed("8", "external_only", None),
]


def figures(rows: list[dict[str, Any]] = ROWS) -> Any:
    return ANALYSIS.measure(material(ARMS, rows, n=8))


def test_confusion_and_agreement_by_hand() -> None:
    found = figures()["metarag"]
    assert (found["n"], found["unknown"], found["compared"]) == (6, 2, 4)
    assert found["agreement"] == 0.75
    # chance: row and column shares of reasoning 1/4 1/4, external 2/4 1/4, internal 1/4 1/4
    chance = 1 / 16 + 2 / 16 + 1 / 16
    assert found["kappa"] == pytest.approx((0.75 - chance) / (1 - chance), abs=1e-4)
    assert found["confusion"]["external_only"] == {
        "external_only": 1,
        "insufficient_knowledge": 1,
        "internal_only": 0,
        "reasoning_error": 0,
    }
    assert (found["none_on_right"], found["none_on_wrong"]) == (1, 1)
    assert sum(sum(line.values()) for line in found["confusion"].values()) == 6


def test_macro_f1_by_hand() -> None:
    # reasoning 2*1/(1+1), external 2*1/(2+1), internal 2*1/(1+1), insufficient 0/(0+1)
    assert macro_f1(figures()["metarag"]["confusion"]) == pytest.approx((1.0 + 2 / 3 + 1.0 + 0.0) / 4)
    assert macro_f1({"a": {"a": 0}}) is None
    assert macro_f1({}) is None


def test_a_swept_row_uses_the_closed_book_row_with_its_settings() -> None:
    run = arms(named("closed_book,metarag"), sweeps=["SELECTION=best,last"])
    rows = [
        {**memory("1", 1.0), "method": "closed_book SELECTION=best"},
        {**memory("1", 0.0), "method": "closed_book SELECTION=last"},
        *({**diagnosed("1", "reasoning_error", 1.0), "method": f"metarag SELECTION={one}"} for one in ("best", "last")),
    ]
    found = ANALYSIS.measure(material(run, rows, n=1))
    assert {name: one["agreement"] for name, one in found.items()} == {
        "metarag SELECTION=best": 1.0,
        "metarag SELECTION=last": 0.0,
    }
    plain = [arm("closed_book"), run[-1]]
    assert ANALYSIS.measure(material(plain, [memory("1", 1.0), rows[-1]], n=1))[run[-1].name]["agreement"] == 1.0

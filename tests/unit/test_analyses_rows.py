"""Comparisons within one run: with the first method, oracles and variants; and the registry."""

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.analyses import comparison, error_budget, variants
from benchmarks.analyses.comparison import baseline_of
from benchmarks.methods import named
from benchmarks.run.arms import Arm, arms
from tests.benchmark_rows import arm, material, once

PLAIN = arm("metarag")
RAG = arm("standard_rag")


def results(of: Arm, *ems: float) -> list[dict[str, Any]]:
    return [once(str(place), em, method=of.name) for place, em in enumerate(ems)]


def test_the_first_method_is_compared_with_the_others() -> None:
    rows = [*results(PLAIN, 1, 1, 1, 0, 0, 1), *results(RAG, 1, 0, 0, 0, 1, 0)]
    found = comparison.ANALYSIS.measure(material([PLAIN, RAG], rows, n=6))
    em = found["against"]["standard_rag"]["em"]
    assert found["method"] == "metarag"
    assert em["difference"] == pytest.approx(100 * (4 - 2) / 6, abs=0.01)
    assert em["ci95"][0] <= em["difference"] <= em["ci95"][1]
    assert em["p"] == pytest.approx(0.625)  # three against one among the four that differ: 2 * (1 + 4) / 16


def test_the_loop_is_the_compared_method_if_the_run_has_it() -> None:
    rows = [*results(RAG, 1.0), *results(PLAIN, 0.0)]
    found = comparison.ANALYSIS.measure(material([RAG, PLAIN], rows, n=1))
    assert (found["method"], list(found["against"])) == ("metarag", ["standard_rag"])
    others = [*results(RAG, 0.0), *results(arm("closed_book"), 0.0)]
    alone = comparison.ANALYSIS.measure(material([RAG, arm("closed_book")], others, n=1))
    assert alone["method"] == "standard_rag"


def test_an_oracle_is_compared_with_the_same_row_without_it() -> None:
    oracle = arm("metarag", oracles=("monitor",))
    rows = [*results(PLAIN, 0, 0, 1, 1), *results(oracle, 1, 0, 1, 1)]
    found = error_budget.ANALYSIS.measure(material([PLAIN, oracle], rows, n=4))
    assert list(found) == ["metarag oracle monitor"]
    assert found[oracle.name]["reference"] == "metarag"
    assert found[oracle.name]["f1"]["difference"] == 25.0


def test_each_row_states_what_it_varies() -> None:
    swept = arm("metarag", assignments=("MAX_METACOGNITIVE_ROUNDS=1",))
    ablated = arm("metarag", assignments=swept.assignments, without_deficits=("internal_only",))
    assert baseline_of(swept, [PLAIN, swept]) == PLAIN
    assert baseline_of(ablated, [PLAIN, swept, ablated]) == swept
    assert baseline_of(swept, [swept]) is None
    assert baseline_of(PLAIN, [PLAIN, swept]) is None


def swept_run(**varied: Any) -> tuple[Arm, ...]:
    """The rows of a sweep, as the benchmark makes them."""
    return arms(named("closed_book,metarag,standard_rag"), sweeps=["SELECTION=best,last"], **varied)


def every(rows: Sequence[Arm]) -> list[dict[str, Any]]:
    """Two questions per row; the second is right only in rows swept to `last`."""
    return [one for row in rows for one in results(row, 1, float("last" in row.name))]


def test_the_first_row_of_a_sweep_is_the_baseline_for_the_others() -> None:
    run = swept_run(ablations=["reasoning_error"], oracles=["monitor"])
    found = variants.ANALYSIS.measure(material(run, every(run), n=2))
    assert {name: one["reference"] for name, one in found.items() if name.startswith("metarag")} == {
        "metarag SELECTION=best without reasoning_error": "metarag SELECTION=best",
        "metarag SELECTION=last": "metarag SELECTION=best",
        "metarag SELECTION=last without reasoning_error": "metarag SELECTION=last",
    }
    assert found["metarag SELECTION=last"]["em"]["difference"] == 50.0
    assert found["standard_rag SELECTION=last"]["reference"] == "standard_rag SELECTION=best"
    (table,) = variants.ANALYSIS.tables(found)
    assert ("metarag SELECTION=last", "metarag SELECTION=best") in [line[:2] for line in table.rows]


def test_methods_of_a_sweep_are_compared_under_the_same_settings() -> None:
    run = swept_run()
    found = comparison.ANALYSIS.measure(material(run, every(run), n=2))
    groups = [found, *found["further"]]
    assert [(group["method"], list(group["against"])) for group in groups] == [
        (f"metarag SELECTION={value}", [f"closed_book SELECTION={value}", f"standard_rag SELECTION={value}"])
        for value in ("best", "last")
    ]
    (table,) = comparison.ANALYSIS.tables(found)
    assert len(table.rows) == 4

"""Comparisons within one run: with the first method, oracles and variants; and the registry."""

from collections.abc import Sequence
from typing import Any

from benchmarks.analyses import comparison, error_budget
from benchmarks.analyses.comparison import baseline_of
from benchmarks.methods import named
from benchmarks.run.arms import Arm, arms
from tests.benchmark_rows import arm, material, once

PLAIN = arm("metarag")
RAG = arm("standard_rag")


def results(of: Arm, *ems: float) -> list[dict[str, Any]]:
    return [once(str(place), em, method=of.name) for place, em in enumerate(ems)]


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

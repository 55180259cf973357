"""Evidence before and after searching again, counted by hand."""

from typing import Any

import numpy as np

from benchmarks.analyses.follow_up import ANALYSIS
from tests.benchmark_rows import arm, failed, material, once, round_of, row

MISSING, REASON = "insufficient_knowledge", "reasoning_error"


def walk(identity: str, first: float | None, *later: tuple[float | None, str, int]) -> dict[str, Any]:
    """A question by the recall of its rounds; each later one with its deficit and the number of its queries."""

    def recall(value: float | None) -> dict[str, float] | None:
        return None if value is None else {"retrieved": value, "packed": 0.0}

    rounds = [round_of(0, "a", 0.0, evidence_recall=recall(first))]
    for index, (found, deficit, queries) in enumerate(later, start=1):
        plan = {"deficit": deficit, "queries": ["q"] * queries}
        rounds.append(round_of(index, "a", 0.0, evidence_recall=recall(found), plan=plan))
    return row(identity, rounds)


ROWS = [
    walk("found late", 0.5, (0.5, REASON, 0), (1.0, MISSING, 2)),
    walk("found at once", 0.5, (1.0, MISSING, 1)),
    walk("did not search", 0.0, (0.0, REASON, 0)),
    walk("did not fire", 0.5),
    walk("paragraphs unknown", None, (None, MISSING, 1)),
    failed("failed"),
]


def figures() -> Any:
    return ANALYSIS.measure(material([arm("metarag")], ROWS, n=6))["metarag"]


def test_first_against_last_round() -> None:
    found = figures()["all"]
    assert (found["n"], found["searched"], found["searches"]) == (3, 2, 2)
    assert (found["first"], found["last"], found["difference"]) == (33.33, 66.67, 33.33)
    low, high = found["ci95"]
    assert 0.0 <= low < 33.33 < high <= 50.0


def test_those_that_searched_and_each_last_deficit() -> None:
    found = figures()
    assert (found["searched"]["n"], found["searched"]["difference"], found["searched"]["ci95"]) == (2, 50.0, [50, 50])
    parts = {name: (one["n"], one["first"], one["last"]) for name, one in found["by_last_deficit"].items()}
    assert parts == {MISSING: (2, 50.0, 100.0), REASON: (1, 0.0, 0.0)}


def test_a_question_that_has_stopped_keeps_what_it_had() -> None:
    assert figures()["by_round"] == [
        {"round": 0, "running": 3, "recall": 33.33},
        {"round": 1, "running": 3, "recall": 50.0},
        {"round": 2, "running": 1, "recall": 66.67},
    ]


def test_nothing_where_nothing_fired_or_nothing_is_known() -> None:
    assert ANALYSIS.measure(material([arm("metarag")], [*ROWS[3:], once("q", 1.0)], n=4)) == {}
    assert (ANALYSIS.tables({}), ANALYSIS.plots({})) == ([], [])


def test_a_run_in_which_none_searched() -> None:
    measured = ANALYSIS.measure(material([arm("metarag")], [ROWS[2]], n=1))
    assert measured["metarag"]["searched"] is None
    gains, rounds = ANALYSIS.tables(measured)
    assert [line[1] for line in gains.rows] == ["all", REASON]
    assert len(rounds.rows) == 2


def test_the_plot_draws_a_line_a_method() -> None:
    from matplotlib.figure import Figure

    (plot,) = ANALYSIS.plots({"metarag": figures()})
    figure = Figure()
    plot.draw(figure)
    (line,) = figure.axes[0].lines
    assert list(np.asarray(line.get_ydata())) == [33.33, 50.0, 66.67]

"""Evidence recall before and after follow-up searches, counted by hand."""

from typing import Any

from benchmarks.analyses.follow_up import ANALYSIS
from tests.benchmark_rows import arm, failed, material, round_of, row

MISSING, REASON = "insufficient_knowledge", "reasoning_error"


def walk(identity: str, first: float | None, *later: tuple[float | None, str, int]) -> dict[str, Any]:
    """A question as the recall of each round; later rounds add a deficit and a number of queries."""

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


def test_the_first_round_is_compared_with_the_last() -> None:
    found = figures()["all"]
    assert (found["n"], found["searched"], found["searches"]) == (3, 2, 2)
    assert (found["first"], found["last"], found["difference"]) == (33.33, 66.67, 33.33)
    low, high = found["ci95"]
    assert 0.0 <= low < 33.33 < high <= 50.0


def test_a_stopped_question_keeps_its_last_recall() -> None:
    assert figures()["by_round"] == [
        {"round": 0, "running": 3, "recall": 33.33},
        {"round": 1, "running": 3, "recall": 50.0},
        {"round": 2, "running": 1, "recall": 66.67},
    ]

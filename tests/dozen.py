"""A dozen questions answered by two systems, few enough to check by hand."""

from typing import Any

from tests.past_runs import row

# id, gold, A's and B's prediction (None: failed), type, hops
DOZEN: tuple[tuple[str, str, str | None, str | None, str, int], ...] = (
    ("q01", "Oslo", "Oslo", "Oslo", "bridge", 2),
    ("q02", "Paris", "Paris", "Paris", "bridge", 2),
    ("q03", "Rome", "Rome", "Rome", "bridge", 2),
    ("q04", "Lima", "Lima", "Quito", "bridge", 2),  # only A
    ("q05", "Mira Holt", "Holt", "Mira Holt", "bridge", 2),  # only B; A: precision 1, recall 1/2, F1 2/3
    ("q06", "1412", "1520", "1412", "comparison", 2),  # only B
    ("q07", "yes", "no", "yes", "comparison", 2),  # only B
    ("q08", "yes", "no", "no", "comparison", 2),
    ("q09", "Tower Gate", "Gate", "Mill", "comparison", 4),  # A: F1 2/3
    ("q10", "Mill Bridge", "Bridge", "Old Mill Bridge", "comparison", 4),  # A: F1 2/3; B: precision 2/3, F1 4/5
    ("q11", "Bern", None, "Bern", "bridge", 4),  # only B
    ("q12", "Kiel", "Kiel", None, "bridge", 4),  # only A
)
EXTRA_A = (("x1", "Ulm", "Ulm"),)
EXTRA_B = (("x2", "Ulm", "Ulm"), ("x3", "Ulm", None))


def rows_a(method: str = "metarag") -> list[dict[str, Any]]:
    """A's rows, including one question that B lacks."""
    shared = [row((id_, gold, a), method, type=type_, hops=hops) for id_, gold, a, _, type_, hops in DOZEN]
    return [*shared, *(row(answer, method) for answer in EXTRA_A)]


def rows_b(method: str = "metarag") -> list[dict[str, Any]]:
    """B's rows in another order, including two questions that A lacks."""
    shared = [row((id_, gold, b), method, type=type_, hops=hops) for id_, gold, _, b, type_, hops in DOZEN]
    return [*(row(answer, method) for answer in EXTRA_B), *reversed(shared)]

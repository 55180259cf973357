"""Does searching again find the missing paragraphs? Supporting paragraphs among the evidence, round by round."""

import math
from collections.abc import Sequence
from typing import Any

from meta_agent_rag.statistics import paired_difference

from ..tables import Cells, Table, number, signed
from .analysis import Analysis, Figures, Material, Row


def measure(material: Material) -> dict[str, Figures]:
    """Recall of the evidence over fired questions whose supporting paragraphs are known, in percent.

    Overall, over questions with a follow-up search, by the deficit of the last plan, and after each round, where
    a question that has stopped keeps its last value.
    """
    measured: dict[str, Figures] = {}
    for arm in material.looping():
        rows = (row for row in material.answered(arm) if len(row["rounds"]) > 1)
        fired = [row for row in rows if all(one["evidence_recall"] is not None for one in row["rounds"])]
        by_deficit: dict[str, list[Row]] = {}
        for row in fired:
            if (plan := row["rounds"][-1]["plan"]) is not None:
                by_deficit.setdefault(plan["deficit"], []).append(row)
        searched = [row for row in fired if _searches(row)]
        if fired:
            measured[arm.name] = {
                "all": _gain(fired, material.seed),
                "searched": _gain(searched, material.seed) if searched else None,
                "by_last_deficit": {name: _gain(rows, material.seed) for name, rows in sorted(by_deficit.items())},
                "by_round": _by_round(fired),
            }
    return measured


def _recalls(row: Row) -> list[float]:
    """The share of supporting paragraphs among the evidence of each round, in percent."""
    return [100.0 * round_["evidence_recall"]["retrieved"] for round_ in row["rounds"]]


def _searches(row: Row) -> int:
    """Rounds that searched again: for a fact, or for a repair."""
    planned = [round_["plan"] is not None and bool(round_["plan"].get("queries")) for round_ in row["rounds"]]
    found = [bool(round_.get("searched_ids")) for round_ in row["rounds"]]
    return sum(map(any, zip(planned, found, strict=True)))


def _gain(rows: Sequence[Row], seed: int) -> dict[str, Any]:
    """First and last round, and their difference in points with its 95 % bootstrap interval over questions."""
    first, last = [_recalls(row)[0] for row in rows], [_recalls(row)[-1] for row in rows]
    found = paired_difference(first, last, seed=seed)
    return {
        "n": len(rows),
        "searched": sum(_searches(row) > 0 for row in rows),
        "searches": sum(_searches(row) for row in rows),
        "first": _mean(first),
        "last": _mean(last),
        "difference": round(found.mean, 2),
        "ci95": [round(found.low, 2), round(found.high, 2)],
    }


def _by_round(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Mean recall over all `rows` after each round; `running` is how many had such a round."""
    walks = [_recalls(row) for row in rows]
    return [
        {
            "round": index,
            "running": sum(len(walk) > index for walk in walks),
            "recall": _mean([walk[min(index, len(walk) - 1)] for walk in walks]),
        }
        for index in range(max(map(len, walks)))
    ]


def _mean(values: Sequence[float]) -> float:
    return round(math.fsum(values) / len(values), 2)


def tables(figures: Figures) -> Sequence[Table]:
    """First against last round, overall and by deficit."""
    rows: list[Cells] = []
    for method, found in figures.items():
        for name, one in {"all": found["all"], "searched again": found["searched"], **found["by_last_deficit"]}.items():
            if one is not None:
                ends = (number(one["first"]), number(one["last"]), signed(one["difference"], one["ci95"]))
                rows.append((method, name, str(one["n"]), str(one["searched"]), *ends))
    title = "Supporting paragraphs among the evidence of fired questions, percent"
    head = ("method", "questions", "n", "searched again", "first round", "last round", "points [95 %]")
    return [Table(name="follow-up", title=title, head=head, rows=rows)]


ANALYSIS = Analysis(
    name="follow_up",
    title="Follow-up retrieval",
    about=(
        "Over answered questions on which the loop fired and whose supporting paragraphs are labelled.",
        "The share of these paragraphs among the evidence, packed or not, in the first and in the last round.",
        "Intervals: 95 %, bootstrap over questions.",
        "A deficit covers the questions whose last plan was about it.",
    ),
    measure=measure,
    tables=tables,
    order=25,
)

"""How reliable p_correct is, for first drafts and for returned answers."""

from collections.abc import Sequence
from typing import Any

from ..metrics import RIGHT
from ..statistics import expected_calibration_error
from ..tables import Table, number, with_interval
from .analysis import Analysis, Figures, Material, Row, separation


def measure(material: Material) -> dict[str, Figures]:
    """Figures by kind of answer, for arms whose rounds have a p_correct and a vote."""
    measured: dict[str, Figures] = {}
    for arm in material.looping(without_oracle="monitor"):
        rows = [row for row in material.answered(arm) if any(map(_is_voted, row["rounds"]))]
        if rows:
            firsts = [row["rounds"][0] for row in rows]
            returned = [row["rounds"][row["chosen"]] for row in rows]
            measured[arm.name] = {
                "first drafts": _judged(firsts, material.seed),
                "returned answers": _judged(returned, material.seed),
            }
    return measured


def _is_voted(round_: Row) -> bool:
    return round_.get("vote") is not None and round_.get("p_correct") is not None


def _judged(rounds: Sequence[Row], seed: int) -> dict[str, Any]:
    voted = [round_ for round_ in rounds if _is_voted(round_)]
    if not voted:
        return {"n": 0, **dict.fromkeys(("stated", "right", "auroc", "auroc_ci95", "ece"))}
    stated = [float(round_["p_correct"]) for round_ in voted]
    right = [float(round_["f1"] >= RIGHT) for round_ in voted]
    return {
        "n": len(voted),
        "stated": round(sum(stated) / len(stated), 4),
        "right": round(sum(right) / len(right), 4),
        **separation(stated, right, seed=seed),
        "ece": round(expected_calibration_error(stated, right), 4),
    }


def tables(figures: Figures) -> Sequence[Table]:
    """Two rows per method."""
    rows = [
        (
            method,
            name,
            str(one["n"]),
            number(one["stated"], 3),
            number(one["right"], 3),
            with_interval(one["auroc"], one["auroc_ci95"], 3),
            number(one["ece"], 3),
        )
        for method, found in figures.items()
        for name, one in found.items()
        if one["n"]
    ]
    head = ("method", "of", "n", "mean p_correct", "share correct", "AUROC [95 %]", "ECE")
    return [Table(name="p_correct", title="p_correct against the share correct", head=head, rows=rows)]


ANALYSIS = Analysis(
    name="p_correct",
    title="The probability of being correct",
    about=(
        f"An answer counts as correct if its F1 is at least {RIGHT:g}.",
        "The difference between mean p_correct and the share correct shows the calibration error,",
        "and `marag bench calibrate` fits a calibration for other models.",
    ),
    measure=measure,
    tables=tables,
    order=21,
)

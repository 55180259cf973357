"""How much repetitions of the same row differ."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from ..tables import Cells, Table, number
from .analysis import Analysis, Figures, Material
from .comparison import SCORES

_FIGURES = ("mean", "sd", "lowest", "highest")


def measure(material: Material) -> Figures:
    """Mean, standard deviation, lowest and highest of EM and F1 over the repetitions of each row, in percent."""
    runs: dict[str, list[dict[str, float]]] = {}
    for arm in material.arms:
        scored = {score: material.scores(arm, score).values() for score in SCORES}
        if scored["em"]:
            means = {score: math.fsum(values) / len(values) for score, values in scored.items()}
            runs.setdefault(arm.base, []).append(means)
    return {
        base: {"repeats": len(found), **{score: _spread([one[score] for one in found]) for score in SCORES}}
        for base, found in runs.items()
        if len(found) > 1
    }


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {
        "mean": round(fmean(values), 2),
        "sd": round(stdev(values), 2),
        "lowest": round(min(values), 2),
        "highest": round(max(values), 2),
    }


def tables(figures: Figures) -> Sequence[Table]:
    """One row per repeated row."""
    rows: list[Cells] = [
        (base, str(found["repeats"]), *(number(found[score][name], 2) for score in SCORES for name in _FIGURES))
        for base, found in figures.items()
    ]
    head = ("row", "repeats", *(f"{score.upper()} {name}" for score in SCORES for name in _FIGURES))
    return [Table(name="spread", title="Spread over repetitions", head=head, rows=rows)]


ANALYSIS = Analysis(
    name="spread",
    title="Spread over repetitions",
    about=("The same row run several times; differences smaller than this spread are noise.",),
    measure=measure,
    tables=tables,
    across=True,
    order=60,
)

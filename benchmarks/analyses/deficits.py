"""What each deficit is worth: how often its diagnosis is right, and what its repairs gain."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from meta_agent_rag.agent.state import NO_DEFICIT

from ..tables import Table, number, percent
from .analysis import Analysis, Figures, Material, Row, share


def measure(material: Material) -> dict[str, Figures]:
    """Figures by deficit, for every arm that runs the loop and diagnosed something.

    `precision` is the share of diagnosed drafts that are wrong (exact match below 1). `repaired` counts the drafts
    after which the deficit's repair was carried out, `gain` is the mean difference in F1 between the draft that it made
    and the one before, in points, `fixed` and `broken` count wrong drafts made right and right ones made wrong.
    """
    measured = {arm.name: _by_deficit(material.answered(arm)) for arm in material.looping(without_oracle="diagnosis")}
    return {name: found for name, found in measured.items() if found}


def _by_deficit(rows: Sequence[Row]) -> dict[str, Any]:
    rounds = [one for row in rows for one in row["rounds"]]
    diagnosed = [one for one in rounds if one["diagnosis"] is not None]
    pairs = [
        (before, after)
        for row in rows
        for before, after in pairwise(row["rounds"])
        if after["plan"] is not None and "f1" in before and "f1" in after
    ]
    names = {one["diagnosis"]["deficit"] for one in diagnosed} | {after["plan"]["deficit"] for _, after in pairs}
    return {name: _figures(name, diagnosed, pairs) for name in sorted(names - {NO_DEFICIT})}


def _figures(name: str, diagnosed: Sequence[Row], pairs: Sequence[tuple[Row, Row]]) -> dict[str, Any]:
    own = [one for one in diagnosed if one["diagnosis"]["deficit"] == name]
    repaired = [(before, after) for before, after in pairs if after["plan"]["deficit"] == name]
    gains = [100.0 * (after["f1"] - before["f1"]) for before, after in repaired]
    return {
        "diagnosed": len(own),
        "precision": share(sum(one["em"] < 1.0 for one in own), len(own)),
        "repaired": len(repaired),
        "gain": round(fmean(gains), 2) if gains else None,
        "fixed": sum(before["em"] < 1.0 <= after["em"] for before, after in repaired),
        "broken": sum(after["em"] < 1.0 <= before["em"] for before, after in repaired),
    }


def tables(figures: Figures) -> Sequence[Table]:
    """One row for each deficit of each method."""
    rows = [
        (
            *(method, name, str(found["diagnosed"]), percent(found["precision"])),
            *(str(found["repaired"]), number(found["gain"]), str(found["fixed"]), str(found["broken"])),
        )
        for method, deficits in figures.items()
        for name, found in deficits.items()
    ]
    head = ("method", "deficit", "diagnosed", "draft wrong", "repairs", "F1 gained", "fixed", "broken")
    return [Table(name="deficit_gains", title="What each deficit is worth", head=head, rows=rows)]


ANALYSIS = Analysis(
    name="deficit_gains",
    title="What each deficit is worth",
    about=(
        "How many of the drafts that were diagnosed with a deficit are wrong (exact match), and what its repairs gain.",
        "The gain is the mean difference in F1 between a repair's draft and the one before, in points.",
        "`fixed` and `broken` count drafts made right and made wrong.",
    ),
    measure=measure,
    tables=tables,
    order=31,
)

"""The main method of a run against every other one, question by question."""

from collections.abc import Sequence
from typing import Any

from ..run.arms import Arm
from ..tables import Table
from .analysis import Analysis, Figures, Material
from .paired import against, table


def measure(material: Material) -> Figures:
    """Differences of one method from every other one under the same settings; empty if it is the only one.

    It is the first method that runs the loop, or else the first method, also if `all` methods run. In a sweep,
    the figures are those of the first values, and `further` holds those of the others.
    """
    groups: dict[tuple[str, ...], list[Arm]] = {}
    for arm in material.arms:
        if not arm.oracles and not arm.without_deficits and arm.repeat == 1:
            groups.setdefault(arm.assignments, []).append(arm)
    found = [_compared(material, group) for group in groups.values() if len(group) > 1]
    compared = [one for one in found if one["against"]]
    if not compared:
        return {}
    return {**compared[0], "further": compared[1:]} if len(compared) > 1 else compared[0]


def _compared(material: Material, group: Sequence[Arm]) -> dict[str, Any]:
    chosen = next((arm for arm in group if arm.method.loop), group[0])
    others = [arm for arm in group if arm != chosen]
    differences = {other.name: against(material, chosen, other) for other in others}
    return {"method": chosen.name, "against": {name: found for name, found in differences.items() if found}}


def tables(figures: Figures) -> Sequence[Table]:
    """One row for each of the other methods."""
    groups = [figures, *figures.get("further", ())]
    compared = ((str(group["method"]), found) for group in groups for found in group["against"].values())
    title = f"{figures['method']} against the other methods"
    return table("comparison", f"{title}, for every swept value" if len(groups) > 1 else title, compared)


ANALYSIS = Analysis(
    name="comparison",
    title="Against the other methods",
    about=(
        "Paired differences on the same questions, with 95 % bootstrap intervals, over those that both answered.",
        "Methods are compared only under the same settings.",
        "p: McNemar's exact test for EM, a sign-flip permutation test for F1, not corrected for the number of rows.",
    ),
    measure=measure,
    tables=tables,
    across=True,
    order=5,
)

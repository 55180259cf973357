"""The method that a run is about against every other one, question by question."""

from collections.abc import Sequence

from ..tables import Table
from .analysis import Analysis, Figures, Material
from .paired import against, table


def measure(material: Material) -> Figures:
    """Differences of one method from each other one, all as they are; nothing where it is alone.

    The one is the first that runs the loop, or else the first: so also where all methods run, by name.
    """
    plain = [arm for arm in material.arms if not arm.variant and arm.repeat == 1]
    if len(plain) < 2:
        return {}
    chosen = next((arm for arm in plain if arm.method.loop), plain[0])
    others = [arm for arm in plain if arm != chosen]
    return {"method": chosen.name, "against": {other.name: against(material, chosen, other) for other in others}}


def tables(figures: Figures) -> Sequence[Table]:
    """A row for each of the others."""
    compared = ((str(figures["method"]), found) for found in figures["against"].values())
    return table("comparison", f"{figures['method']} against the other methods", compared)


ANALYSIS = Analysis(
    name="comparison",
    title="Against the other methods",
    about=(
        "Paired differences over the same questions, with 95 % bootstrap intervals.",
        "p: McNemar's exact test for EM, a permutation test by signs for F1, not corrected for the number of rows.",
    ),
    measure=measure,
    tables=tables,
    across=True,
    order=5,
)

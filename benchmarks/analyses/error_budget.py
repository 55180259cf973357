"""What the errors of each stage cost: the points that a method gains with that stage replaced by its oracle."""

from collections.abc import Sequence

from ..tables import Table
from .analysis import Analysis, Figures, Material
from .comparison import against, baseline_of, paired_table


def measure(material: Material) -> dict[str, Figures]:
    """Differences of every arm with oracles from the same arm without them."""
    pairs = [(arm, baseline_of(arm, material.arms)) for arm in material.arms if arm.oracles]
    found = {arm: against(material, arm, plain) for arm, plain in pairs if plain is not None}
    return {arm.name: {"oracles": list(arm.oracles), **figures} for arm, figures in found.items() if figures}


def tables(figures: Figures) -> Sequence[Table]:
    """One row per oracle."""
    return paired_table("error-budget", "Points lost to the errors of each stage", figures.items())


ANALYSIS = Analysis(
    name="error_budget",
    title="Error budget",
    about=(
        "An oracle replaces a stage with the data set's gold information; the points gained are what its errors cost.",
        "Oracle rows use gold answers, so they are not results of a method.",
    ),
    measure=measure,
    tables=tables,
    order=40,
)

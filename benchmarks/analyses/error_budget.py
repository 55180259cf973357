"""What the mistakes of each stage cost: the points that a method gains with that stage replaced by its oracle."""

from collections.abc import Sequence

from ..tables import Table
from .analysis import Analysis, Figures, Material
from .paired import against, reference_of, table


def measure(material: Material) -> dict[str, Figures]:
    """Differences of every arm with oracles from the same one without."""
    pairs = [(arm, reference_of(arm, material.arms)) for arm in material.arms if arm.oracles]
    return {
        arm.name: {"oracles": list(arm.oracles), **against(material, arm, plain)}
        for arm, plain in pairs
        if plain is not None
    }


def tables(figures: Figures) -> Sequence[Table]:
    """A row an oracle."""
    return table("error-budget", "Points that each stage's mistakes cost", figures.items())


ANALYSIS = Analysis(
    name="error_budget",
    title="Error budget",
    about=(
        "An oracle replaces a stage by what the data set knows; the points gained are what that stage's mistakes cost.",
        "Oracle rows look at gold answers: they are no results of a method.",
    ),
    measure=measure,
    tables=tables,
    order=40,
)

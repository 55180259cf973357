"""What a changed setting or a left-out deficit does to a method."""

from collections.abc import Sequence

from ..tables import Table
from .analysis import Analysis, Figures, Material
from .paired import against, reference_of, table


def measure(material: Material) -> dict[str, Figures]:
    """Differences of every varied arm from the row of reference; that row itself is left out."""
    pairs = [(arm, reference_of(arm, material.arms)) for arm in material.arms if arm.variant and not arm.oracles]
    return {arm.name: against(material, arm, plain) for arm, plain in pairs if plain is not None}


def tables(figures: Figures) -> Sequence[Table]:
    """A row a variant."""
    return table("variants", "Variants against their row of reference", figures.items())


ANALYSIS = Analysis(
    name="variants",
    title="Sweeps and ablations",
    about=(
        "Each row is set against the one that the column `against` names, and differs from it in what the names say.",
        "A left-out deficit is set against the same settings with it, a swept value against the first of the sweep.",
        "The p values are not corrected for the number of rows.",
    ),
    measure=measure,
    tables=tables,
    order=50,
)

"""The effect of a changed setting or a left-out deficit on a method."""

from collections.abc import Sequence

from ..tables import Table
from .analysis import Analysis, Figures, Material
from .comparison import against, baseline_of, paired_table


def measure(material: Material) -> dict[str, Figures]:
    """Differences of every varied arm from its baseline row, which itself is left out."""
    pairs = [(arm, baseline_of(arm, material.arms)) for arm in material.arms if arm.variant and not arm.oracles]
    found = {arm.name: against(material, arm, plain) for arm, plain in pairs if plain is not None}
    return {name: figures for name, figures in found.items() if figures}


def tables(figures: Figures) -> Sequence[Table]:
    """One row per variant."""
    return paired_table("variants", "Variants against their baseline row", figures.items())


ANALYSIS = Analysis(
    name="variants",
    title="Sweeps and ablations",
    about=(
        "Each row is compared with the row in the column `against`, and differs from it in what the names say.",
        "A row without a deficit is compared with the full row, a swept value with the first value of the sweep.",
        "The p values are not corrected for the number of rows.",
    ),
    measure=measure,
    tables=tables,
    order=50,
)

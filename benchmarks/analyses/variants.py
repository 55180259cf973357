"""What a changed setting or a left-out deficit does to a method."""

from collections.abc import Sequence

from ..tables import Table
from .analysis import Analysis, Figures, Material
from .paired import against, reference_of, table


def measure(material: Material) -> dict[str, Figures]:
    """Differences of every varied arm from the row that it varies, where the run has that."""
    pairs = [(arm, reference_of(arm, material.arms)) for arm in material.arms if arm.variant and not arm.oracles]
    return {arm.name: against(material, arm, plain) for arm, plain in pairs if plain is not None}


def tables(figures: Figures) -> Sequence[Table]:
    """A row a variant."""
    return table("variants", "Variants against the row that they vary", figures.items())


ANALYSIS = Analysis(
    name="variants",
    title="Sweeps and ablations",
    about=("Each row differs from the one it is set against in what its name says, and in nothing else.",),
    measure=measure,
    tables=tables,
    order=50,
)

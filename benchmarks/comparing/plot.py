"""A comparison as a picture: B minus A over all pairs and by group, each with its interval."""

from pathlib import Path
from typing import TYPE_CHECKING

from meta_agent_rag.errors import InputError

from ..plots import Plot, intervals, save
from .comparison import Comparison
from .words import sides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ENDINGS = ("png", "svg")
_SCORES = {"F1": "f1", "EM": "em"}


def save_plot(found: Comparison, path: Path) -> None:
    """Draw it into a PNG or SVG file; raises `InputError` for a name with a different ending."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in _ENDINGS:
        raise InputError(f"The plot is written as PNG or SVG; {path.name!r} must end in .png or .svg.")
    by_hops = {f"{hops} hops": one for hops, one in found.by_hops.items()}
    groups = {"all": found.figures, **found.by_type, **by_hops}
    a, b = sides(found)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        differences = {
            label: [
                (one.scores[score].difference.mean, one.scores[score].difference.low, one.scores[score].difference.high)
                for one in groups.values()
            ]
            for label, score in _SCORES.items()
        }
        intervals(axes, [f"{name} (n = {one.n})" for name, one in groups.items()], differences)
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_xlabel("points, 95 % intervals")
        axes.legend()

    save(Plot(name=path.stem, title=f"{b} minus {a}", draw=draw, height=1.6 + 0.5 * len(groups)), path.parent, ending)

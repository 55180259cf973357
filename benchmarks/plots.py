"""Plots for screen and print: colours that colour-blind readers can distinguish, and a second cue for every colour.

Colours: Okabe and Ito, "Color Universal Design", 2008 (https://jfly.uni-koeln.de/color/). Lines and points also differ
by markers, so that nothing is lost in black and white.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from meta_agent_rag.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h", "d")
_STYLES = ("-", "--", "-.", ":")
_DPI = 150

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot by the name of its file; `draw` gets an empty figure. `title` also serves as its alternative text."""

    name: str
    title: str
    draw: Callable[["Figure"], None]
    width: float = 7.0
    height: float = 4.0


def save(plot: Plot, folder: Path) -> None:
    """Draw a plot into `FOLDER/NAME.png`; raises whatever the drawing raises."""
    require("bench", "A plot")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(plot.width, plot.height), layout="constrained")
    plot.draw(figure)
    figure.suptitle(plot.title, fontsize="medium")
    folder.mkdir(exist_ok=True)
    # without the drawing library's name and version, the same figures give the same bytes
    figure.savefig(folder / f"{plot.name}.png", dpi=_DPI, metadata={"Software": None})


def lines(axes: "Axes", curves: Mapping[str, Sequence[Point]]) -> None:
    """One line per curve, each with its own colour, dashes and markers; a curve of one point is a marker."""
    for index, (label, points) in enumerate(curves.items()):
        across, up = [point[0] for point in points], [point[1] for point in points]
        axes.plot(
            across,
            up,
            label=label,
            color=COLOURS[index % len(COLOURS)],
            linestyle=_STYLES[index % len(_STYLES)],
            marker=MARKERS[index % len(MARKERS)],
            markevery=max(1, len(points) // 8),
            markersize=5,
        )


def scatter(axes: "Axes", points: Mapping[str, tuple[float, float, float, float]]) -> None:
    """One marker per label at (x, y) with a bar from low to high."""
    for index, (label, (across, up, low, high)) in enumerate(points.items()):
        axes.errorbar(
            [across],
            [up],
            yerr=[[max(0.0, up - low)], [max(0.0, high - up)]],
            label=label,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            markeredgecolor="black",
            markersize=8,
            elinewidth=0.8,
            linestyle="none",
        )


def intervals(axes: "Axes", names: Sequence[str], series: Mapping[str, Sequence[tuple[float, float, float]]]) -> None:
    """One row per name from the top, and for each series a marker at (value, low, high) with its interval."""
    for index, (label, values) in enumerate(series.items()):
        shift = 0.3 * (index - (len(series) - 1) / 2)
        rows = [place + shift for place in range(len(names))]
        axes.errorbar(
            [value for value, _, _ in values],
            rows,
            xerr=[
                [max(0.0, value - low) for value, low, _ in values],
                [max(0.0, high - value) for value, _, high in values],
            ],
            label=label,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            linestyle="none",
            capsize=3,
        )
    axes.set_yticks(range(len(names)), list(names))
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)


def legend(axes: "Axes") -> None:
    """The legend beside the axes, so that it hides nothing."""
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)

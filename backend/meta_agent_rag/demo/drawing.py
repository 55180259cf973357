"""The compiled graph as SVG, with the running node highlighted."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from .words import spoken

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from ..agent.context import Context
    from ..agent.state import State

_MAIN = (("retrieve", "evidence"), ("write", "cognition"), ("diagnose", "monitor, critic"))
_END = "end"
_MARGIN = 8.0


@dataclass(frozen=True, kw_only=True)
class _Box:
    x: float
    y: float
    width: float
    height: float = 46.0

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(frozen=True, kw_only=True)
class Lit:
    """Which nodes are highlighted: the running one, those that have run, and the end once the answer is ready."""

    active: str | None = None
    visited: Collection[str] = ()
    done: bool = False

    def state(self, name: str) -> str:
        """`active`, `visited` or `idle`."""
        if name == self.active:
            return "active"
        return "visited" if name in self.visited or (self.done and name == _END) else "idle"

    @property
    def words(self) -> str:
        """The description for screen readers."""
        if self.done:
            return "the answer is ready"
        return f"running: {spoken(self.active)}" if self.active else "nothing is running"


def repair_nodes(graph: "CompiledStateGraph[State, Context]") -> tuple[str, ...]:
    """The nodes of the compiled graph that a diagnosis leads to, in order."""
    top = {name for name, _ in _MAIN}
    return tuple(name for name in graph.get_graph().nodes if name not in top and not name.startswith("__"))


def drawing(repairs: Sequence[str], lit: Lit | None = None, *, compact: bool = False) -> str:
    """The graph twice, for a wide page and for a narrow or `compact` one; the style sheet shows one of them.

    `repairs` are the nodes that a diagnosis leads to.
    """
    lit = lit or Lit()
    wide = _svg(repairs, lit, width=760.0, columns=max(len(repairs), 1), size="wide")
    narrow = _svg(repairs, lit, width=360.0, columns=2, size="narrow")
    return f'<div class="m-graph{" m-compact" if compact else ""}">{wide}{narrow}</div>'


def _svg(repairs: Sequence[str], lit: Lit, *, width: float, columns: int, size: str) -> str:
    main, below = _layout(repairs, width, columns)
    boxes = {**main, **below}
    captions = {**dict(_MAIN), _END: "best draft"}
    last = max(box.bottom for box in boxes.values())
    nodes = [
        _node("answer" if name == _END else spoken(name), captions.get(name), box, lit.state(name))
        for name, box in boxes.items()
    ]
    marker = f"m-arrow-{size}"
    defs = (
        f'<defs><marker id="{marker}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 8 4 0 8Z" class="m-head"/></marker></defs>'
    )
    paths = "".join(f'<path d="{d}" marker-end="url(#{marker})" class="m-edge"/>' for d in _edges(main, below))
    return (
        f'<svg class="m-{size}" viewBox="0 0 {width:.0f} {last + _MARGIN + 2:.0f}" role="img" '
        f'aria-label="The loop: retrieve, write, diagnose, repair, write again; {escape(lit.words)}">'
        f"{defs}{_frame(list(below.values()))}{paths}{''.join(nodes)}</svg>"
    )


def _layout(repairs: Sequence[str], width: float, columns: int) -> tuple[dict[str, _Box], dict[str, _Box]]:
    names = [*(name for name, _ in _MAIN), _END]
    gap = width / 22
    wide = (width - gap * (len(names) - 1) - 4) / len(names)
    main = {name: _Box(x=2 + index * (wide + gap), y=2, width=wide) for index, name in enumerate(names)}
    space = 10.0
    cell = (width - space * (columns - 1) - 2 * _MARGIN - 4) / columns
    below = {
        name: _Box(
            x=2 + _MARGIN + (index % columns) * (cell + space), y=92 + (index // columns) * 46, width=cell, height=36
        )
        for index, name in enumerate(repairs)
    }
    return main, below


def _edges(main: dict[str, _Box], below: dict[str, _Box]) -> list[str]:
    """Arrows along the top row, and the loop through the repairs: down from `diagnose`, up to `write`."""
    row = list(main.values())
    edges = [f"M{one.x + one.width:.1f} 25H{two.x - 1:.1f}" for one, two in pairwise(row)]
    if below:
        down, up = main["diagnose"], main["write"]
        top = min(box.y for box in below.values()) - _MARGIN
        edges.append(f"M{down.middle:.1f} {down.bottom:.1f}V{top - 1:.1f}")
        edges.append(f"M{up.middle:.1f} {top:.1f}V{up.bottom + 1:.1f}")
    return edges


def _frame(boxes: Sequence[_Box]) -> str:
    """A frame around the repairs: a diagnosis leads to one of them, and each leads back to `write`."""
    if not boxes:
        return ""
    left, top = min(box.x for box in boxes) - _MARGIN / 2, min(box.y for box in boxes) - _MARGIN
    right, bottom = max(box.x + box.width for box in boxes) + _MARGIN / 2, max(box.bottom for box in boxes) + _MARGIN
    return (
        f'<rect x="{left - 1:.1f}" y="{top:.1f}" width="{right - left + 2:.1f}" height="{bottom - top:.1f}" '
        'rx="12" class="m-frame"/>'
    )


def _node(title: str, caption: str | None, box: _Box, state: str) -> str:
    """A box with its title and, in the top row, a caption below it."""
    middle = box.y + box.height / 2
    rect = f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.0f}" rx="9"/>'
    if caption is None:
        words = f'<text x="{box.middle:.1f}" y="{middle + 4:.1f}" class="m-small">{escape(title)}</text>'
    else:
        words = (
            f'<text x="{box.middle:.1f}" y="{middle - 2:.1f}">{escape(title)}</text>'
            f'<text x="{box.middle:.1f}" y="{middle + 14:.1f}" class="m-caption">{escape(caption)}</text>'
        )
    return f'<g class="m-node m-{state}">{rect}{words}</g>'

"""The compiled graph as SVG, with the node at work lit."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..words import spoken

if TYPE_CHECKING:
    from ...agent.engine import Engine

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


def repairs_of(engine: "Engine") -> tuple[str, ...]:
    """The nodes of a compiled graph that repair a deficit, in their order."""
    main = {name for name, _ in _MAIN}
    return tuple(name for name in engine.graph.get_graph().nodes if name not in main and not name.startswith("__"))


def drawing(
    repairs: Sequence[str], *, active: str | None = None, visited: Collection[str] = (), done: bool = False
) -> str:
    """The graph twice, for a wide page and a narrow one, of which the style sheet shows one.

    `repairs` are the nodes that a diagnosis leads to.
    """
    lit = {"active": active, "visited": set(visited), "done": done}
    at_work = "the answer is there" if done else f"at work: {spoken(active)}" if active else "nothing is at work"
    wide = _svg(repairs, width=760.0, columns=max(len(repairs), 1), size="wide", label=at_work, **lit)
    narrow = _svg(repairs, width=360.0, columns=2, size="narrow", label=at_work, **lit)
    return f'<div class="m-graph">{wide}{narrow}</div>'


def _svg(
    repairs: Sequence[str],
    *,
    width: float,
    columns: int,
    size: str,
    label: str,
    active: str | None,
    visited: set[str],
    done: bool,
) -> str:
    main, below = _layout(repairs, width, columns)
    boxes = {**main, **below}
    captions = {**dict(_MAIN), _END: "the best draft", **dict.fromkeys(repairs, "repair")}
    last = max(box.bottom for box in boxes.values())
    nodes = []
    for name, box in boxes.items():
        state = "active" if name == active else "visited" if name in visited or (done and name == _END) else "idle"
        title = "answer" if name == _END else spoken(name)
        nodes.append(_node(title, captions[name], box, state, quiet=name in below))
    marker = f"m-arrow-{size}"
    defs = (
        f'<defs><marker id="{marker}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 8 4 0 8Z" class="m-head"/></marker></defs>'
    )
    paths = "".join(f'<path d="{d}" marker-end="url(#{marker})" class="m-edge"/>' for d in _edges(main, below))
    return (
        f'<svg class="m-{size}" viewBox="0 0 {width:.0f} {last + _MARGIN + 2:.0f}" role="img" '
        f'aria-label="The loop: retrieve, write, diagnose, repair, write again; {escape(label)}">'
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
    left, top = min(box.x for box in boxes), min(box.y for box in boxes) - _MARGIN
    right, bottom = max(box.x + box.width for box in boxes), max(box.bottom for box in boxes) + _MARGIN
    return (
        f'<rect x="{left - 1:.1f}" y="{top:.1f}" width="{right - left + 2:.1f}" height="{bottom - top:.1f}" '
        'rx="12" class="m-frame"/>'
    )


def _node(title: str, caption: str, box: _Box, state: str, *, quiet: bool) -> str:
    middle = box.y + box.height / 2
    parts: list[Any] = [
        f'<g class="m-node m-{state}"><rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.0f}" rx="9"/>'
    ]
    if quiet:
        parts.append(f'<text x="{box.middle:.1f}" y="{middle + 4:.1f}" class="m-small">{escape(title)}</text>')
    else:
        parts.append(f'<text x="{box.middle:.1f}" y="{middle - 2:.1f}">{escape(title)}</text>')
        parts.append(f'<text x="{box.middle:.1f}" y="{middle + 14:.1f}" class="m-caption">{escape(caption)}</text>')
    return "".join((*parts, "</g>"))

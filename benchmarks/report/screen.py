"""The tables on the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.wording import counted

from ..run.config import RunConfig
from ..run.protocols import Protocol, differences
from ..tables import Cells, number
from .document import mixed
from .figures import HEAD, method_cells
from .published import PublishedRow, published_rows

_TOO_WIDE = ("prec. [95 %]", "rec. [95 %]")
_LEFT_OUT_FIRST = ("broken", "fixed", "fired", "calls", "p50 s", "USD")
"""Columns that a narrow terminal does without, so that every name is whole."""


def show(config: RunConfig, summary: Mapping[str, Any], ours: Protocol) -> None:
    """Print our rows, and the published ones with their differences."""
    title = f"{config.dataset}, {config.mode}, {counted(summary['n'], 'question')} (percent)"
    if caveat := mixed(summary["methods"]):
        title = f"{title}, {caveat}: see report.md"
    free = runs_here(config.settings)
    head = tuple(column for column in HEAD if column not in _TOO_WIDE)
    rows = [_on_screen(name, figures, free=free) for name, figures in summary["methods"].items()]
    _print_table(title, *_fitting(head, rows))
    published = [(row, differences(row.protocol, ours)) for row in published_rows(config.dataset)]
    for caption, last, wanted in (
        ("Published, same protocol", "source", False),
        ("Published, not comparable: see report.md", "measured differently", True),
    ):
        rows = [
            (row.name, number(row.em), _f1(row), _aspects(found) if wanted else row.source)
            for row, found in published
            if bool(found) == wanted
        ]
        _print_table(caption, ("method", "EM", "F1", last), rows, folded=3)


def _aspects(differing: Sequence[str]) -> str:
    """The names of what differs, without the values."""
    return ", ".join(
        one.partition(":")[2].strip() if one.startswith("not stated") else one.partition(":")[0] for one in differing
    )


def _f1(row: PublishedRow) -> str:
    return number(row.f1) if row.judged is None else f"judged {number(row.judged)}"


def _on_screen(name: str, figures: Mapping[str, Any], *, free: bool) -> Cells:
    """The columns that fit into 80 characters: no precision and recall, intervals without decimals."""
    row = dict(zip(HEAD, method_cells(name, figures, free=free), strict=True))
    for score in ("em", "f1"):
        if figures[score] is not None:
            low, high = figures[f"{score}_ci95"]
            row[f"{score.upper()} [95 %]"] = f"{figures[score]:.1f} [{low:.0f}, {high:.0f}]"
    return tuple(cell for column, cell in row.items() if column not in _TOO_WIDE)


def _fitting(head: Cells, rows: Sequence[Cells]) -> tuple[Cells, list[Cells]]:
    """The columns that fit beside each other on the terminal."""
    from rich.console import Console

    kept = list(range(len(head)))
    widths = [max(len(line[place]) for line in (head, *rows)) + 1 for place in kept]
    for column in _LEFT_OUT_FIRST:
        if sum(widths[place] for place in kept) - 1 <= Console().width:
            break
        kept.remove(head.index(column))
    return tuple(head[place] for place in kept), [tuple(row[place] for place in kept) for row in rows]


def _print_table(caption: str, head: Cells, rows: Sequence[Cells], *, folded: int = 0) -> None:
    """Print a table; its column `folded` takes several lines if the terminal is too narrow."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    table = Table(title=caption, title_justify="left", box=SIMPLE_HEAD, padding=0, show_edge=False)
    for place, cell in enumerate(head):
        table.add_column(cell, no_wrap=place != folded, overflow="fold" if place == folded else "ellipsis")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    console.print(table)
    console.print()

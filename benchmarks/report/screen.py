"""The score table on the terminal."""

from collections.abc import Mapping
from typing import Any

from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.wording import counted

from ..run.config import RunConfig
from .document import mixed
from .figures import HEAD, method_cells

_LEFT_OUT_FIRST = ("prec. [95 %]", "rec. [95 %]", "broken", "fixed", "fired", "calls", "p50 s", "USD")
"""Columns that a narrow terminal does without, so that every name is whole."""


def show(config: RunConfig, summary: Mapping[str, Any]) -> None:
    """Print a row for each method, with the columns that fit beside each other, and intervals without decimals."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title = f"{config.dataset}, {config.mode}, {counted(summary['n'], 'question')} (percent)"
    if caveat := mixed(summary["methods"]):
        title = f"{title}, {caveat}: see report.md"
    free = runs_here(config.settings)
    rows = []
    for name, figures in summary["methods"].items():
        row = dict(zip(HEAD, method_cells(name, figures, free=free), strict=True))
        for score in ("em", "f1"):
            if figures[score] is not None:
                low, high = figures[f"{score}_ci95"]
                row[f"{score.upper()} [95 %]"] = f"{figures[score]:.1f} [{low:.0f}, {high:.0f}]"
        rows.append(row)
    widths = {column: max(len(row[column]) for row in ({column: column}, *rows)) + 1 for column in HEAD}
    console = Console()
    for column in _LEFT_OUT_FIRST:
        if sum(widths.values()) - 1 > console.width:
            del widths[column]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0, show_edge=False)
    for column in widths:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(row[column]) for column in widths))
    console.print(table)
    console.print()

"""How a run shows itself: a progress bar with running scores, lines, JSON lines, or nothing."""

import json
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

DisplayName = Literal["rich", "plain", "json", "none"]


class Silent:
    """Shows nothing; the others keep their running figures in it."""

    def __init__(self) -> None:
        self.total = 0
        self.rows: list[dict[str, Any]] = []

    def corpus(self, done: int, total: int) -> None:
        """Passages indexed so far."""

    def start(self, total: int, done: Sequence[dict[str, Any]]) -> None:
        """The run begins, or goes on."""
        self.total = total
        self.rows = list(done)

    def row(self, row: dict[str, Any]) -> None:
        """One more answer, or failure."""
        self.rows.append(row)

    def stop(self) -> None:
        """The run is over."""

    def figures(self) -> str:
        """Scores over what was asked so far, failures included, and what it cost."""
        asked = max(len(self.rows), 1)
        em, f1 = (100.0 * sum(row[score] or 0.0 for row in self.rows) / asked for score in ("em", "f1"))
        failed = sum(row["error"] is not None for row in self.rows)
        errors = f"  errors {failed}" if failed else ""
        return f"EM {em:.1f}  F1 {f1:.1f}  {self._money()}{errors}"

    def _money(self) -> str:
        costs = [row["cost_usd"] for row in self.rows if row["error"] is None]
        if not costs or None in costs:
            return "cost unknown" if costs else "cost -"
        return f"{sum(Decimal(str(cost)) for cost in costs):.4f} USD"


class Plain(Silent):
    """A line an answer, on stderr."""

    def corpus(self, done: int, total: int) -> None:
        """A line a batch."""
        sys.stderr.write(f"indexing {done}/{total} passages\n")

    def row(self, row: dict[str, Any]) -> None:
        """A line."""
        super().row(row)
        result = row["error"] or f"{row['prediction']!r} (gold {row['gold']!r}, EM {row['em']:.0f}, F1 {row['f1']:.2f})"
        sys.stderr.write(f"{len(self.rows)}/{self.total} {row['method']} {row['id']}: {result}  | {self.figures()}\n")


class JsonLines(Silent):
    """A JSON object an answer, on stdout."""

    def row(self, row: dict[str, Any]) -> None:
        """An object without the rounds, which samples.jsonl holds."""
        super().row(row)
        short = {name: value for name, value in row.items() if name not in ("rounds", "evidence")}
        sys.stdout.write(json.dumps(short, ensure_ascii=False, default=str) + "\n")
        sys.stdout.flush()


class RichBar(Silent):
    """A progress bar with running EM and F1, cost, and the time that is left."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
        )
        self._corpus = self._progress.add_task("indexing", total=None, visible=False, figures="passages")
        self._task = self._progress.add_task("answering", total=None, visible=False, figures="")

    def corpus(self, done: int, total: int) -> None:
        """Advance the bar of the index."""
        self._progress.start()
        self._progress.update(self._corpus, completed=done, total=total, visible=True)

    def start(self, total: int, done: Sequence[dict[str, Any]]) -> None:
        """Show the bar."""
        super().start(total, done)
        self._progress.start()
        self._progress.update(self._task, total=total, completed=len(done), visible=True)

    def row(self, row: dict[str, Any]) -> None:
        """Advance the bar."""
        super().row(row)
        self._progress.update(self._task, advance=1, figures=self.figures())

    def stop(self) -> None:
        """Leave the bar as it stands."""
        self._progress.stop()


def display(name: DisplayName) -> Silent:
    """The display of that name."""
    kinds: dict[DisplayName, type[Silent]] = {"rich": RichBar, "plain": Plain, "json": JsonLines, "none": Silent}
    return kinds[name]()

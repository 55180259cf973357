"""How a run shows its progress: a bar with running scores, lines, JSON lines, or nothing."""

import json
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal

DisplayName = Literal["rich", "plain", "json", "none"]


class Silent:
    """Shows nothing; the other displays extend it and show its running figures, which are sums over any number of rows.

    `free` says that a call without a price is free, because the model runs on this machine.
    """

    def __init__(self, *, free: bool = False) -> None:
        self._free = free
        self._total = self._asked = self._failed = 0
        self._scores = dict.fromkeys(("em", "f1"), 0.0)
        self._cost_usd: Decimal | None = Decimal(0)

    def corpus(self, done: int, total: int) -> None:
        """Passages indexed so far."""

    def start(self, total: int, done: Iterable[Mapping[str, Any]]) -> None:
        """`total` answers are expected; `done` exist from an earlier part of the run."""
        self._total = total
        for row in done:
            self._count(row)

    def row(self, row: Mapping[str, Any]) -> None:
        """One more answer, or failure."""
        self._count(row)

    def stop(self) -> None:
        """The run is over, or interrupted."""

    def figures(self) -> str:
        """Scores over the answers so far, their cost, and the number of failures."""
        from meta_agent_rag.wording import FREE

        answered = self._asked - self._failed
        em, f1 = (f"{100.0 * score / answered:.1f}" if answered else "-" for score in self._scores.values())
        failed = f"  failed {self._failed}" if self._failed else ""
        unknown = FREE if self._free else "cost unknown"
        return f"EM {em}  F1 {f1}  {unknown if self._cost_usd is None else f'{self._cost_usd:.4f} USD'}{failed}"

    def _count(self, row: Mapping[str, Any]) -> None:
        self._asked += 1
        if row["error"] is not None:
            self._failed += 1
            return
        for name in self._scores:
            self._scores[name] += row[name]
        if self._cost_usd is not None:
            self._cost_usd = None if row["cost_usd"] is None else self._cost_usd + Decimal(str(row["cost_usd"]))


class PlainDisplay(Silent):
    """One line per answer, on stderr."""

    def row(self, row: Mapping[str, Any]) -> None:
        """A line."""
        super().row(row)
        result = row["error"] or f"{row['prediction']!r} (gold {row['gold']!r}, EM {row['em']:.0f}, F1 {row['f1']:.2f})"
        sys.stderr.write(f"{self._asked}/{self._total} {row['method']} {row['id']}: {result}  | {self.figures()}\n")


class JsonDisplay(Silent):
    """One JSON object per answer, on stdout."""

    def row(self, row: Mapping[str, Any]) -> None:
        """An object without the rounds, which are in samples.jsonl."""
        short = {name: value for name, value in row.items() if name not in ("rounds", "evidence")}
        sys.stdout.write(json.dumps(short, ensure_ascii=False, default=str) + "\n")
        sys.stdout.flush()


class RichBar(Silent):
    """A progress bar with running EM and F1, cost, and remaining time."""

    def __init__(self, *, free: bool = False) -> None:
        super().__init__(free=free)
        from rich.console import Console
        from rich.progress import Progress, TextColumn

        columns = (*Progress.get_default_columns(), TextColumn("{task.fields[figures]}"))
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._corpus = self._progress.add_task("indexing", total=None, visible=False, figures="passages")
        self._task = self._progress.add_task("answering", total=None, visible=False, figures="")

    def corpus(self, done: int, total: int) -> None:
        """Advance the bar of the index."""
        self._progress.start()
        self._progress.update(self._corpus, completed=done, total=total, visible=True)

    def start(self, total: int, done: Iterable[Mapping[str, Any]]) -> None:
        """Show the bar."""
        super().start(total, done)
        self._progress.start()
        self._progress.update(self._task, total=total, completed=self._asked, visible=True)

    def row(self, row: Mapping[str, Any]) -> None:
        """Advance the bar."""
        super().row(row)
        self._progress.update(self._task, advance=1, figures=self.figures())

    def stop(self) -> None:
        """Leave the bar as it is."""
        self._progress.stop()


def display(name: DisplayName, *, free: bool = False) -> Silent:
    """The display of that name; `free` says that the model runs on this machine."""
    kinds = {"rich": RichBar, "plain": PlainDisplay, "json": JsonDisplay, "none": Silent}
    return kinds[name](free=free)

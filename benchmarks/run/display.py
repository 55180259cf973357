"""How a run shows its progress: a bar with running scores, lines, JSON lines, or nothing."""

import json
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal

DisplayName = Literal["rich", "plain", "json", "none"]


class Display:
    """Shows running figures, which are sums over any number of rows, in the way that `name` says.

    `free` says that a call without a price is free, because the model runs on this machine.
    """

    def __init__(self, name: DisplayName, *, free: bool = False) -> None:
        self._name = name
        self._free = free
        self._total = self._asked = self._failed = 0
        self._scores = dict.fromkeys(("em", "f1"), 0.0)
        self._cost_usd: Decimal | None = Decimal(0)
        if name == "rich":
            from rich.console import Console
            from rich.progress import Progress, TextColumn

            columns = (*Progress.get_default_columns(), TextColumn("{task.fields[figures]}"))
            self._bars = Progress(*columns, console=Console(stderr=True))
            self._corpus = self._bars.add_task("indexing", total=None, visible=False, figures="passages")
            self._task = self._bars.add_task("answering", total=None, visible=False, figures="")

    def corpus(self, done: int, total: int) -> None:
        """Passages indexed so far."""
        if self._name == "rich":
            self._bars.start()
            self._bars.update(self._corpus, completed=done, total=total, visible=True)

    def start(self, total: int, done: Iterable[Mapping[str, Any]]) -> None:
        """`total` answers are expected; `done` exist from an earlier part of the run."""
        self._total = total
        for row in done:
            self._count(row)
        if self._name == "rich":
            self._bars.start()
            self._bars.update(self._task, total=total, completed=self._asked, visible=True)

    def row(self, row: Mapping[str, Any]) -> None:
        """One more answer, or failure: JSON has no rounds, which are in samples.jsonl."""
        self._count(row)
        if self._name == "rich":
            self._bars.update(self._task, advance=1, figures=self._figures())
        elif self._name == "json":
            short = {name: value for name, value in row.items() if name not in ("rounds", "evidence")}
            sys.stdout.write(json.dumps(short, ensure_ascii=False, default=str) + "\n")
            sys.stdout.flush()
        elif self._name == "plain":
            scored = f"{row['prediction']!r} (gold {row['gold']!r}, EM {row['em']}, F1 {row['f1']})"
            place = f"{self._asked}/{self._total} {row['method']} {row['id']}"
            sys.stderr.write(f"{place}: {row['error'] or scored}  | {self._figures()}\n")

    def stop(self) -> None:
        """The run is over, or interrupted."""
        if self._name == "rich":
            self._bars.stop()

    def _figures(self) -> str:
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

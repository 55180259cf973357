"""What an analysis is: rows to figures, figures to tables and plots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from meta_agent_rag.llm.pricing import Tariff

from ..plots import Plot
from ..run.arms import Arm
from ..statistics import auroc, auroc_interval
from ..tables import Table

Row: TypeAlias = Mapping[str, Any]
Figures: TypeAlias = Mapping[str, Any]
"""Plain JSON values, rounded, independent of the order of rows."""
Quadrant: TypeAlias = tuple[bool, bool]


@dataclass(frozen=True, kw_only=True)
class Material:
    """The input of analyses.

    `rows` holds the rows of every arm by its name, ordered by question id; each arm was run on `n` questions,
    and may have failed on some or not reached them. `quadrants` are those of the deficits, by name; `tariffs` price
    the calls of each tier, by default at the newest prices.
    """

    arms: tuple[Arm, ...]
    rows: Mapping[str, Sequence[Row]]
    n: int
    seed: int
    quadrants: Mapping[str, Quadrant | None]
    tariffs: Mapping[str, Tariff] | None = None

    def answered(self, arm: Arm) -> list[Row]:
        """The rows of an arm that contain an answer, with its rounds."""
        return [row for row in self.rows[arm.name] if row["error"] is None and row["rounds"]]

    def looping(self, *, without_oracle: str | None = None) -> list[Arm]:
        """The arms that run the loop, except those with the oracle named."""
        return [arm for arm in self.arms if arm.method.loop and without_oracle not in arm.oracles]

    def scores(self, arm: Arm, score: str) -> dict[str, float]:
        """A score in percent by question id, of the questions that the arm answered."""
        return {row["id"]: 100.0 * row[score] for row in self.rows[arm.name] if row["error"] is None}

    def pairs(self, one: Arm, other: Arm, score: str) -> tuple[list[float], list[float]]:
        """A score of two arms in percent, question by question, over the questions that both answered."""
        first, second = self.scores(one, score), self.scores(other, score)
        ids = sorted(first.keys() & second.keys())
        return [first[id_] for id_ in ids], [second[id_] for id_ in ids]


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One analysis by name.

    `measure` returns figures by arm name, which `summary.json` stores under that method, or, if
    `across`, figures of the run as a whole; empty if there are none. `tables` and `plots`
    use only those figures, so that a report can be rebuilt from a summary. `about` explains
    the figures to a reader, one sentence per item; `order` places the
    section in the report; `missing` replaces it if the loop fired and there are no figures.

        ANALYSIS = Analysis(name="length", title="Length of answers", about=["..."], measure=measure)
    """

    name: str
    title: str
    about: Sequence[str]
    measure: Callable[[Material], Figures]
    tables: Callable[[Figures], Sequence[Table]] = lambda figures: ()
    plots: Callable[[Figures], Sequence[Plot]] = lambda figures: ()
    across: bool = False
    missing: str = ""
    order: int = 100


def share(part: float, whole: float) -> float | None:
    """A share in 0..1 with four decimals; `None` if the total is 0."""
    return round(part / whole, 4) if whole else None


def separation(scores: Sequence[float], right: Sequence[float], *, seed: int) -> dict[str, Any]:
    """AUROC and its 95 % interval with four decimals; `None` if all answers are right or all wrong."""
    area, interval = auroc(scores, right), auroc_interval(scores, right, seed=seed)
    return {
        "auroc": None if area is None else round(area, 4),
        "auroc_ci95": None if interval is None else [round(end, 4) for end in interval],
    }

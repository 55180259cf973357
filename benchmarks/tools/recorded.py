"""The records in `benchmarks/results`, by data set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from meta_agent_rag.datasets import discover

from ..analyses.analysis import Row
from ..recording import Recording

POOLED = ("hotpotqa", "2wikimultihopqa")
"""The data sets that are also reported together."""
RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A record's answers by method, in the order of its questions."""

    dataset: str
    mode: str
    rows: Mapping[str, Sequence[Row]]
    recording: Recording

    def with_those_of(self, other: "Recorded") -> "Recorded":
        """These answers followed by the other record's, by method."""
        names = dict.fromkeys((*self.rows, *other.rows))
        return replace(self, rows={name: [*self.rows.get(name, ()), *other.rows.get(name, ())] for name in names})

    @property
    def label(self) -> str:
        """The data set as its authors write it."""
        known = discover().get(self.dataset)
        return self.dataset if known is None else known.label


@cache
def records(folder: str = ".") -> tuple[Recorded, ...]:
    """The records in a folder of the results, those of pooled data sets first.

    Records of the same data set and mode, which cover different questions, are merged.
    """
    found: dict[tuple[str, str], Recorded] = {}
    for path in sorted((RESULTS / folder).glob("*.jsonl.gz"), key=lambda path: path.name.removesuffix(".jsonl.gz")):
        one = _recorded(path)
        before = found.get((one.dataset, one.mode))
        found[one.dataset, one.mode] = one if before is None else before.with_those_of(one)
    order = {name: place for place, name in enumerate(POOLED)}
    return tuple(sorted(found.values(), key=lambda one: (one.mode, order.get(one.dataset, len(order)))))


def _recorded(path: Path) -> Recorded:
    recording = Recording.read(path)
    rows: dict[str, list[Row]] = {}
    for row in recording.rows():
        rows.setdefault(row["method"], []).append(row)
    experiment = recording.run["experiment"]
    return Recorded(dataset=experiment["dataset"], mode=experiment["mode"], rows=rows, recording=recording)

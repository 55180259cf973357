"""The stops of the tour: recorded answers for each deficit, a failed repair and a correct draft, selected by rule."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...agent.state import NO_DEFICIT
from ..words import spoken
from .files import Row, Run, recorded_runs

LOOP = "metarag"
ONE_PASS = "standard_rag"
RIGHT = 0.5
"""The F1 from which an answer counts as right."""


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A recorded answer of the loop: what it shows, and one pass's answer to the same question, if known."""

    shows: str
    run: Run
    row: Row
    one_pass: Row | None

    @property
    def gain(self) -> float:
        """The F1 of the returned answer minus that of the first draft."""
        return gain(self.row)

    @property
    def advantage(self) -> float:
        """The F1 of the returned answer minus that of the first draft or of one pass, whichever is higher."""
        return min(self.gain, float(self.row["f1"]) - float(self.one_pass["f1"]) if self.one_pass else self.gain)


def tour() -> tuple[Stop, ...]:
    """The stops, from the packaged runs; a repaired one is titled with its deficits in order.

    Raises `InputError` if the runs are damaged, `CorpusError` if they were not installed.

    For each deficit, the one diagnosed most often first: among the questions whose first draft had it and was
    improved, the one with the largest advantage over both that draft and one pass; if there is none, the same among
    all questions for which it was diagnosed in a later round; then the one that lost most by a repair, or gained
    nothing; then the first whose correct draft was kept immediately; and for a run not represented so far, the one
    with the largest advantage. Ties go to the longest complete derivation, then to the first; no question occurs twice.
    """
    answers = [_stop(run, row) for run in recorded_runs() for row in run.rows if _is_whole(row)]
    chosen: list[Stop] = []
    for choices, by in _rules(_diagnosed(answers)):
        taken = {id(stop.row) for stop in chosen}
        for shows, wanted in choices:
            if fitting := [stop for stop in answers if wanted(stop) and id(stop.row) not in taken]:
                chosen.append(_titled(shows, max(fitting, key=lambda stop: (by(stop), _facts(stop.row)))))
                break
    for run in {id(stop.run): stop.run for stop in answers}.values():
        if all(stop.run is not run for stop in chosen):
            most = max((stop for stop in answers if stop.run is run), key=lambda stop: stop.advantage)
            chosen.append(_titled(f"Largest gain on {run.name.removeprefix('recorded: ')}", most))
    return tuple(chosen)


_Wanted = Callable[[Stop], bool]
_Rule = tuple[Sequence[tuple[str, _Wanted]], Callable[[Stop], float]]


def _rules(deficits: Sequence[str]) -> Iterable[_Rule]:
    """Each with a title (empty: the deficits of the repairs) for each of its choices, the first of which counts."""
    for name in deficits:
        later = f"{spoken(name).capitalize()}, in a later round"
        yield [("", _repaired(name)), (later, _had_later(name))], lambda stop: stop.advantage
    failed = ("A repair that fails", lambda stop: _fired(stop) and stop.row["f1"] < RIGHT)
    yield [failed], lambda stop: -stop.gain
    yield [("A right draft that stays", lambda stop: not _fired(stop) and stop.row["f1"] == 1)], lambda stop: stop.gain


def _diagnosed(answers: Iterable[Stop]) -> list[str]:
    """The deficits in the recorded rounds, the one diagnosed most often first."""
    found = [round_.get("diagnosis") for stop in answers for round_ in stop.row["rounds"]]
    counts = Counter(str(one["deficit"]) for one in found if one and one["deficit"] != NO_DEFICIT)
    return sorted(counts, key=lambda name: (-counts[name], name))


def _repaired(name: str) -> _Wanted:
    return lambda stop: named(stop.row) == name and stop.gain > 0


def _had_later(name: str) -> _Wanted:
    return lambda stop: any((one.get("diagnosis") or {}).get("deficit") == name for one in stop.row["rounds"][1:])


def _titled(shows: str, stop: Stop) -> Stop:
    repaired = [spoken(round_["plan"]["deficit"]) for round_ in stop.row["rounds"][1:]]
    title = shows or f"{', then '.join(repaired).capitalize()}: repaired"
    last = stop.row["rounds"][-1].get("derivation") or {}
    if stop.gain > 0 and any(fact.get("open") for fact in last.get("facts", ())):
        title += ", a fact open"
    if stop.gain > 0 and stop.advantage <= 0:
        title += "; one pass was right too"
    return replace(stop, shows=title)


def _fired(stop: Stop) -> bool:
    return len(stop.row["rounds"]) > 1


def gain(row: Row) -> float:
    """The F1 of the returned answer minus that of the first draft."""
    return float(row["f1"]) - float(row["rounds"][0]["f1"])


def named(row: Row) -> str | None:
    """The deficit diagnosed in the first draft."""
    diagnosis = row["rounds"][0].get("diagnosis")
    return diagnosis["deficit"] if diagnosis else None


def _facts(row: Row) -> int:
    """The number of facts of a complete derivation, so that there is a chain to show; 0 if one is open."""
    facts = (row["rounds"][0].get("derivation") or {}).get("facts", ())
    return 0 if any(fact.get("open") for fact in facts) else len(facts)


def _is_whole(row: Row) -> bool:
    rounds: Sequence[Any] = row.get("rounds") or ()
    return row["method"] == LOOP and bool(rounds) and not row.get("error")


def _stop(run: Run, row: Row) -> Stop:
    return Stop(shows="", run=run, row=row, one_pass=run.answer(row["id"], ONE_PASS))

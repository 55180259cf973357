"""The stops of the tour: recorded answers that show each deficit, a failed repair and a right draft, chosen by rule."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..words import deficit
from .files import Row, Run, recorded_runs

LOOP = "metarag"
ONE_PASS = "standard_rag"
RIGHT = 0.5
"""The F1 from which an answer counts as right."""
_DEFICITS = ("reasoning_error", "external_only", "insufficient_knowledge", "internal_only")


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A recorded answer of the loop: what it shows, and how one pass answered the question, where that is known."""

    shows: str
    run: Run
    row: Row
    one_pass: Row | None


def tour() -> tuple[Stop, ...]:
    """The stops, from the runs that come with the package. Raises `InputError` where they are damaged, `CorpusError`
    where they were not installed.

    For each deficit, of the questions whose first draft it was named for, the one that the loop gained most F1 on;
    then the one that a repair lost most on, or gained nothing; then the first whose right draft was kept at once;
    and of a run that none of these is from, the one that gained most. Of equals one with a derivation is taken, else
    the first, and no question twice.
    """
    answers = [(run, row) for run in recorded_runs() for row in run.rows if _is_whole(row)]
    chosen: list[Stop] = []
    for shows, wanted, by in _rules():
        taken = {id(stop.row) for stop in chosen}
        fitting = [(run, row) for run, row in answers if wanted(row) and id(row) not in taken]
        if fitting:
            run, row = max(fitting, key=lambda found: (by(found[1]), _is_derived(found[1])))
            chosen.append(_stop(shows, run, row))
    for run in {id(run): run for run, _ in answers}.values():
        if all(stop.run is not run for stop in chosen):
            row = max((row for other, row in answers if other is run), key=gain)
            chosen.append(_stop(f"The most gained, {run.name.removeprefix('recorded: ')}", run, row))
    return tuple(chosen)


_Rule = tuple[str, Callable[[Row], bool], Callable[[Row], float]]


def _rules() -> Iterable[_Rule]:
    for name in _DEFICITS:
        yield f"{deficit(name)}: found and repaired", _repaired(name), gain
    yield "A repair that fails", lambda row: _is_repaired(row) and row["f1"] < RIGHT, lambda row: -gain(row)
    yield "A right draft that stays", lambda row: not _is_repaired(row) and row["f1"] == 1, gain


def _repaired(name: str) -> Callable[[Row], bool]:
    return lambda row: named(row) == name and gain(row) > 0


def _is_repaired(row: Row) -> bool:
    return len(row["rounds"]) > 1


def named(row: Row) -> str | None:
    """The deficit that was named for the first draft."""
    diagnosis = row["rounds"][0].get("diagnosis")
    return diagnosis["deficit"] if diagnosis else None


def gain(row: Row) -> float:
    """The F1 of the returned answer less that of the first draft."""
    return float(row["f1"]) - float(row["rounds"][0]["f1"])


def _is_derived(row: Row) -> bool:
    """Has the answer a derivation, so that there is a chain to show?"""
    derivation = row["rounds"][0].get("derivation") or {}
    return bool(derivation.get("answer"))


def _is_whole(row: Row) -> bool:
    rounds: Sequence[Any] = row.get("rounds") or ()
    return row["method"] == LOOP and bool(rounds) and not row.get("error")


def _stop(shows: str, run: Run, row: Row) -> Stop:
    one_pass = (one for one in run.rows if one["id"] == row["id"] and one["method"] == ONE_PASS)
    return Stop(shows=shows, run=run, row=row, one_pass=next(one_pass, None))

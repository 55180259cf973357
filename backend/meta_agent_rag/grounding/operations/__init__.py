"""Ways to derive a figure from others, one file each: a file that exports `OPERATION` is found."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from ...discovery import by_name, exported
from ...text.figures import Figure
from ...text.figures.figure import in_unit

Operands = Sequence[Figure]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation by name; `cues` in `cues.yaml` are words of a claim that call for it.

    One without such words is only tried for claims that a critic accepted.

    `steps` yields the calculations of a wanted figure from others, written out; empty if it cannot be derived. `picks`
    are the numbers of figures that may be picked from all those at hand; a rule of three needs three.
    """

    name: str
    steps: Callable[[Figure, Operands], Iterator[str]]
    picks: tuple[int, ...] = (2,)


@cache
def discover_operations() -> Mapping[str, Operation]:
    """Every operation of this folder, by name. Raises `DuplicateNameError`."""
    return by_name(exported(__name__, "OPERATION", Operation), "operations")


@cache
def cues() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The lower-case words that call for an operation, by its name and by language."""
    rows: Mapping[str, Mapping[str, Sequence[str]]] = yaml.safe_load(
        files(__package__).joinpath("cues.yaml").read_text(encoding="utf-8")
    )
    return rows


def same_kind(wanted: Figure, others: Operands) -> list[tuple[Figure, float]]:
    """The other figures that measure the same as the wanted one, with their value in its unit.

    A figure without a unit matches any; beside others that share one, it has theirs: "70 minutes, then 55".
    """
    units = {other.unit for other in others if other.unit}
    shared = next(iter(units)) if len(units) == 1 else ""
    found = []
    for other in others:
        if not other.numbers or other.ordinal or other.unit == "clock":
            continue
        unit = other.unit or shared
        value = other.number if unit == wanted.unit or "" in {wanted.unit, unit} else None
        value = in_unit(other.number, unit, wanted.unit) if value is None else value
        if value is not None:
            found.append((other, value))
    return found


def reaches(wanted: Figure, value: float) -> bool:
    """Is a calculated value the wanted one, rounded to its last digit, or, if "about", also in its trailing zeros?"""
    step = wanted.step if wanted.approximate else min(wanted.step, 1.0)
    exact = value == int(value) and not wanted.approximate
    for number in wanted.numbers:
        allowed = 0.0 if exact else step / 2 * (number / wanted.number if wanted.number else 1.0)
        if abs(number - value) <= allowed + 1e-9 * abs(value):
            return True
    return False


def written(value: float) -> str:
    """A number for display, without a needless fraction."""
    return f"{value:g}" if value != int(value) or abs(value) >= 1e15 else f"{int(value):,}"

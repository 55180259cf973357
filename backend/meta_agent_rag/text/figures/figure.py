"""A figure in a text as a value, and comparisons of figures."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from ..dates import Date

CLOCK = "clock"
_BARE_TIME = re.compile(r"([01]?\d|2[0-3])[.:h]([0-5]\d)")
_POUNDS = {"pound", "currency:GBP"}
"""The same word in English."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number, a date or a time of day.

    `numbers` are its readings, the most likely first: `1,260` may be 1260 or 1.26; empty for a date more precise
    than a year. `unit` is empty for a bare number, `percent`, `currency:CODE`, `clock` (minutes since midnight), or
    a name that Pint knows. `written` is `text[start:end]`; `step` the value of one in its last significant digit;
    `approximate` means that its text says "about", `ordinal` that it is an ordinal such as "third".
    """

    written: str
    start: int
    end: int
    numbers: tuple[float, ...] = ()
    unit: str = ""
    date: Date | None = None
    step: float = 1.0
    approximate: bool = False
    ordinal: bool = False

    @property
    def number(self) -> float:
        """The most likely reading; 0 for a date."""
        return self.numbers[0] if self.numbers else 0.0

    @property
    def is_date(self) -> bool:
        """Is it a date more precise than a year?"""
        return self.date is not None and not self.numbers


def stands_in(figure: Figure, sources: Sequence[Figure]) -> bool:
    """Do the sources contain the figure: the same value in any unit, or a more precise one?"""
    if figure.is_date:
        return _date_stands_in(figure, sources)
    return any(same_figure(figure, source) for source in sources)


def same_figure(figure: Figure, source: Figure) -> bool:
    """Is a number equal to that of the source? In another unit, or marked "about", it may be rounded.

    A year matches a date in it; a number without a unit matches one with any unit, tonnes match tonnes per hectare.
    """
    if source.date is not None and not source.numbers:
        return not figure.unit and figure.date is not None and figure.date.year == source.date.year
    if CLOCK in {figure.unit, source.unit} and (clock := _as_clock(figure)) and (other_clock := _as_clock(source)):
        return not set(clock).isdisjoint(other_clock)
    for number in figure.numbers:
        half = figure.step / 2 * (number / figure.number if figure.number else 1.0)  # of this reading
        for other in source.numbers:
            if not figure.unit or not source.unit or _one_unit(figure.unit, source.unit):
                allowed = half if figure.approximate else 0.0
            elif (converted := in_unit(other, source.unit, figure.unit)) is not None:
                other, allowed = converted, half  # noqa: PLW2901
            else:
                continue
            if abs(number - other) <= allowed + 1e-9 * abs(other):
                return True
    return False


def _as_clock(figure: Figure) -> tuple[float, ...]:
    """Minutes since midnight, also of a bare "20.00"; empty for another figure."""
    if figure.unit == CLOCK:
        return figure.numbers
    written = _BARE_TIME.fullmatch(figure.written) if not figure.unit else None
    return () if written is None else (60.0 * int(written[1]) + int(written[2]),)


def _one_unit(one: str, other: str) -> bool:
    """Is it the same unit, or a rate of it?"""
    (first, _, per), (second, _, per_other) = (unit.partition(" / ") for unit in (one, other))
    return first == second and (per == per_other or not per or not per_other)


@lru_cache(maxsize=4096)  # checking one table needs the same conversions thousands of times
def in_unit(number: float, unit: str, wanted: str) -> float | None:
    """A quantity in another unit; `None` if the units measure different things.

    >>> in_unit(5.0, "kilometer", "meter"), in_unit(5.0, "kilometer", "kilogram")
    (5000.0, None)
    """
    if unit == wanted or {unit, wanted} == _POUNDS:
        return number
    if not measurable(unit) or not measurable(wanted):
        return None
    one, other = _parsed(unit), _parsed(wanted)
    if one.dimensionality != other.dimensionality:
        return None
    return float(_registry().Quantity(number, one).to(other).magnitude)


def multiplied(one: Figure, other: Figure, wanted: str) -> float | None:
    """The product of two quantities in another unit: 1.5 kW for 4 h are 6 kWh; `None` if it measures another thing."""
    if not measurable(one.unit) or not measurable(other.unit) or not measurable(wanted):
        return None
    units, target = _parsed(one.unit) * _parsed(other.unit), _parsed(wanted)
    if units.dimensionality != target.dimensionality:
        return None
    return float(_registry().Quantity(one.number * other.number, units).to(target).magnitude)


@cache
def measurable(unit: str) -> bool:
    """Is it a unit known to Pint, so that it can be converted?"""
    if not unit or unit in {CLOCK, "percent"} or unit.startswith("currency:"):
        return False
    from pint import UndefinedUnitError

    try:
        _parsed(unit)
    except UndefinedUnitError:
        return False
    return True


def _parsed(unit: str) -> Any:
    """The unit parsed by Pint; CLDR writes powers as part of the name, unlike Pint: square_meter."""
    return _registry().parse_units(unit.replace("square_", "square ").replace("cubic_", "cubic "))


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()


def _date_stands_in(figure: Figure, sources: Iterable[Figure]) -> bool:
    """Matches a date with the same precision, or day and month with the year beside them."""
    assert figure.date is not None
    dates = [source.date for source in sources if source.date is not None]
    year, month, day = figure.date.year, figure.date.month, figure.date.day
    if any(year in {0, date.year} and month in {0, date.month} and day in {0, date.day} for date in dates):
        return True
    of_no_year = any(not date.year and month in {0, date.month} and day in {0, date.day} for date in dates)
    return of_no_year and any(date.year == year for date in dates)

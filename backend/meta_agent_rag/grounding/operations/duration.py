"""The time between two dates or times of day, and the date or time that lies a given time before or after another."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import MAXYEAR, date, timedelta
from itertools import pairwise

from ...text.dates import Date
from ...text.figures import Figure
from ...text.figures.figure import CLOCK, in_unit
from . import Operands, Operation, reaches, written

_MINUTES = "minute"
_DAY = 24 * 60
_LONGEST = 1_000_000
"""The longest span, in any unit, that is added to a date."""
_COMMON_YEAR = 2001
"""The year assumed for a day and month without one."""


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    clocks = [figure for figure in others if figure.unit == CLOCK]
    if len(clocks) == 2 and (apart := in_unit(clocks[1].number - clocks[0].number, _MINUTES, wanted.unit or "hour")):
        apart = apart if apart > 0 else apart + (in_unit(_DAY, _MINUTES, wanted.unit or "hour") or 0)
        if reaches(wanted, apart):
            yield f"{clocks[0].written} \u2192 {clocks[1].written}: {written(round(apart, 4))}"
        breaks = [(one, in_unit(one.number, one.unit, wanted.unit or "hour")) for one in others if one not in clocks]
        worked = apart - sum(value or 0 for _, value in breaks)
        if breaks and all(value for _, value in breaks) and reaches(wanted, worked):
            shown = " \u2212 ".join(one.written for one, _ in breaks)
            yield f"{clocks[0].written} \u2192 {clocks[1].written} \u2212 {shown} = {written(round(worked, 4))}"
    dated = _with_years([figure for figure in others if figure.date is not None])
    for (one, first), (other, second) in pairwise(dated):
        yield from _between(wanted, one, first, other, second)
    yield from _end(wanted, others)
    yield from _time_of_day(wanted, others)


def _with_years(figures: list[Figure]) -> list[tuple[Figure, Date]]:
    """The dates in chronological order; one without a year has that of the date before it.

    If none has a year, it is a common one, and a date before the previous one is in the next year.
    """
    found: list[tuple[Figure, Date]] = []
    if figures and all(figure.date is not None and not figure.date.year for figure in figures):
        year, last = _COMMON_YEAR, (0, 0)
        for figure in figures:
            assert figure.date is not None
            month, day = figure.date.month, figure.date.day
            year, last = year + ((month, day) < last), (month, day)
            found.append((figure, Date(year=year, month=month, day=day)))
        return found
    for figure in figures:
        assert figure.date is not None
        own = figure.date
        if not own.year and found:
            own = Date(year=found[-1][1].year, month=own.month, day=own.day)
        if own.year:
            found.append((figure, own))
    return sorted(found, key=lambda pair: (pair[1].year, pair[1].month, pair[1].day))


def _between(wanted: Figure, one: Figure, first: Date, other: Figure, second: Date) -> Iterator[str]:
    unit = wanted.unit or "year"
    apart: float | None
    if unit == "year":
        apart = _years(first, second)
    elif unit == "month":
        apart = 12 * (second.year - first.year) + second.month - first.month if first.month and second.month else None
    else:
        days = _days(first, second)
        apart = None if days is None else in_unit(days, "day", unit)
    if apart and reaches(wanted, apart):
        yield f"{one.written} \u2192 {other.written}: {written(apart)}"


def _years(first: Date, second: Date) -> float:
    """Whole years; if a month or day is missing, the difference of the years."""
    years = second.year - first.year
    if not (first.month and second.month and first.day and second.day):
        return years
    return years - ((second.month, second.day) < (first.month, first.day))


def _days(first: Date, second: Date) -> int | None:
    try:
        return (date(second.year, second.month, second.day) - date(first.year, first.month, first.day)).days
    except ValueError:
        return None


def _end(wanted: Figure, others: Operands) -> Iterator[str]:
    """The date that lies a given time before or after another."""
    if wanted.date is None:
        return
    begun = [figure for figure in others if figure.date is not None and (figure.date.year or not wanted.date.year)]
    spans = [figure for figure in others if figure.unit in {"year", "month", "week", "day"}]
    for one in begun:
        for span in spans:
            for sign, factor in (("+", 1), ("\u2212", -1)):
                assert one.date is not None
                reached = _later(one.date, span, factor)
                if reached is not None and any(_agrees(wanted.date, end) for end in (reached, _day_before(reached))):
                    yield f"{one.written} {sign} {span.written} = {wanted.written}"


def _time_of_day(wanted: Figure, others: Operands) -> Iterator[str]:
    """The time of day that lies a given time, or several, before or after another."""
    if wanted.unit != CLOCK:
        return
    clocks = [figure for figure in others if figure.unit == CLOCK]
    spans = [(one, in_unit(one.number, one.unit, _MINUTES)) for one in others if one.unit != CLOCK and not one.date]
    if len(clocks) != 1 or not spans or not all(minutes for _, minutes in spans):
        return
    for sign, factor in (("+", 1), ("\u2212", -1)):
        if reaches(wanted, (clocks[0].number + factor * sum(minutes or 0 for _, minutes in spans)) % _DAY):
            yield f"{clocks[0].written} {sign} {f' {sign} '.join(one.written for one, _ in spans)} = {wanted.written}"


def _later(begun: Date, span: Figure, factor: int) -> Date | None:
    amount = factor * int(min(span.number, _LONGEST))
    if not begun.year and span.unit not in {"week", "day"}:
        return None
    if span.unit == "year":
        return _in_month(begun.year + amount, begun.month, begun.day)
    if span.unit == "month":
        months = begun.year * 12 + begun.month - 1 + amount
        return _in_month(months // 12, months % 12 + 1, begun.day) if begun.month else None
    try:
        start = date(begun.year or _COMMON_YEAR, begun.month, begun.day)
        end = start + timedelta(days=amount * (7 if span.unit == "week" else 1))
    except (ValueError, OverflowError):
        return None
    return Date(year=end.year if begun.year else 0, month=end.month, day=end.day)


def _in_month(year: int, month: int, day: int) -> Date:
    """That day, or the last one of a shorter month: three months after 31 March is 30 June."""
    last = monthrange(year, month)[1] if month and 0 < year <= MAXYEAR else day
    return Date(year=year, month=month, day=min(day, last))


def _day_before(end: Date) -> Date:
    """The last day of a period that ends before this one."""
    try:
        last = date(end.year or _COMMON_YEAR, end.month, end.day) - timedelta(days=1)
    except (ValueError, OverflowError):
        return end
    return Date(year=last.year if end.year else 0, month=last.month, day=last.day)


def _agrees(wanted: Date, reached: Date) -> bool:
    """Is it that date, or its month or year?"""
    pairs = ((wanted.year, reached.year), (wanted.month, reached.month), (wanted.day, reached.day))
    return all(one in {0, other} for one, other in pairs)


OPERATION = Operation(name="duration", steps=_steps, picks=(2, 3))

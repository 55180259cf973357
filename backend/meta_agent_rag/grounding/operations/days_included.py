"""The days from one date to another, both included: 26 from 3 to 28 November."""

from collections.abc import Iterator
from datetime import date

from ...text.dates import Date
from ...text.figures import Figure
from . import Operands, Operation, reaches, written

_COMMON_YEAR = 2001
"""The year assumed for two days without one."""


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    found = [(figure, figure.date) for figure in others if figure.date and figure.date.day]
    if len(found) != 2 or wanted.unit != "day":
        return
    (one, begun), (other, ended) = found
    year = ended.year or begun.year or _COMMON_YEAR
    last = _day(ended, year)
    turns = not begun.year and (begun.month, begun.day) > (ended.month, ended.day)  # over New Year
    first = _day(begun, year - turns)
    if first is None or last is None:
        return
    if last < first:
        (one, first), (other, last) = (other, last), (one, first)
    days = (last - first).days + 1
    if reaches(wanted, days):
        yield f"{one.written} \u2192 {other.written}, both included: {written(days)}"


def _day(day: Date, year: int) -> date | None:
    """The date, in that year if it has none."""
    try:
        return date(day.year or year, day.month, day.day)
    except ValueError:
        return None


OPERATION = Operation(name="days_included", steps=_steps)

"""The days from one date to another, both included: 26 from 3 to 28 November."""

from collections.abc import Iterator
from datetime import date

from ...text.dates import Date
from ...text.figures import Figure
from . import Operands, Operation, reaches, written

_COMMON_YEAR = 2001
"""The year assumed for two days without one."""


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    year = next((figure.date.year for figure in others if figure.date and figure.date.year), _COMMON_YEAR)
    dated = [(figure, day) for figure in others if figure.date and (day := _day(figure.date, year))]
    if len(dated) != 2 or wanted.unit != "day":
        return
    (one, first), (other, last) = sorted(dated, key=lambda pair: pair[1])
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

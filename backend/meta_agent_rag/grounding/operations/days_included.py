"""The days from one date to another, both included: 26 from 3 to 28 November."""

from collections.abc import Iterator
from datetime import date

from ...text.dates import Date
from ...text.figures import Figure
from . import Operands, Operation, reaches, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    dated = [(figure, day) for figure in others if figure.date and (day := _day(figure.date))]
    if len(dated) != 2 or wanted.unit != "day":
        return
    (one, first), (other, last) = sorted(dated, key=lambda pair: pair[1])
    days = (last - first).days + 1
    if reaches(wanted, days):
        yield f"{one.written} \u2192 {other.written}, both included: {written(days)}"


def _day(day: Date) -> date | None:
    try:
        return date(day.year, day.month, day.day)
    except ValueError:
        return None


OPERATION = Operation(name="days_included", steps=_steps)

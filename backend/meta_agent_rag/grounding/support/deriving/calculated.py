"""Figures of a claim by the calculation that the critic wrote: code checks its numbers, and what it gives."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....text.figures import Figure
from ....text.figures.arithmetic import Calculation
from ....text.figures.figure import CLOCK, in_unit, stands_in
from ....text.figures.lexicon import PERCENT
from ...operations import Operands, discover_operations, reaches, written
from ..statement import Statement
from .counting import counted

CONSTANTS = frozenset({2, 7, 10, 12, 24, 52, 60, 100, 365, 1000})
"""Common knowledge: days of a week, months of a year, twice."""
_CALENDAR = frozenset({1, 3, 4, 5})
"""More of it: months and weeks of a quarter or month, working days, the first of several days."""
_WHOLE = 100
_MINUTE, _MINUTES_OF_A_DAY = "minute", 24 * 60


def calculated(
    wanted: Figure, calculations: Sequence[Calculation], at_hand: Operands, asked: Operands, named: Sequence[Statement]
) -> Iterator[str]:
    """The critic's calculations of a figure, written out.

    One counts if each of its numbers is `at_hand` (from the named words), in what was asked, a count of what the named
    words list, a constant, or the result of a calculation before it; one at least must be at hand.
    """
    known = [*at_hand, *asked]
    for calculation in calculations:
        operands = _recognised(calculation, known, named)
        if operands is None or not any(stands_in(one, at_hand) for one in calculation.operands):
            continue
        yield from discover_operations()["duration"].steps(wanted, _with_one_span(calculation, operands))
        if any(reaches(wanted, value) for value in _values(calculation, operands, wanted)):
            yield f"{calculation.written} = {wanted.written}"
        results = calculation.results
        known += [one for one in results if any(reaches(one, value) for value in _values(calculation, operands, one))]


def _recognised(calculation: Calculation, known: Operands, named: Sequence[Statement]) -> Operands | None:
    """The numbers of a calculation as the figures that they stand for; `None` if one stands for none."""
    found = [
        _source(one, known) or (one if _is_understood(one, known, named) else None) for one in calculation.operands
    ]
    operands = [one for one in found if one is not None]
    return operands if len(operands) == len(found) else None


def _source(operand: Figure, known: Operands) -> Figure | None:
    """The operand in the reading and the unit in which a known figure has the same value."""
    readings = [replace(operand, numbers=(number,)) for number in operand.numbers] or [operand]
    pairs = ((reading, source) for source in known for reading in readings if stands_in(reading, (source,)))
    return next((replace(reading, unit=reading.unit or source.unit) for reading, source in pairs), None)


def _is_understood(operand: Figure, known: Operands, named: Sequence[Statement]) -> bool:
    """Is it a constant, a percentage as a factor (0.2, 1.2, 0.8), or a count?"""
    shares = [one.number / _WHOLE for one in known if one.unit == PERCENT]
    factors = [factor for share in shares for factor in (share, 1 + share, 1 - share)]
    if operand.number in CONSTANTS | _CALENDAR or any(math.isclose(operand.number, factor) for factor in factors):
        return True
    return bool(counted(operand, named, freely=True))


def _with_one_span(calculation: Calculation, operands: Operands) -> Operands:
    """A date, and all that is added to it as one span: "31 March + 5 x 3 months"."""
    dates = [one for one in operands if one.is_date]
    units = {one.unit for one in operands if one.unit}
    value = calculation.value([0.0 if one in dates else one.number for one in operands])
    if len(dates) != 1 or len(units) != 1 or not value:
        return operands
    (unit,) = units
    return [dates[0], Figure(written=f"{written(value)} {unit}s", start=0, end=0, numbers=(value,), unit=unit)]


def _values(calculation: Calculation, operands: Operands, wanted: Figure) -> Iterator[float]:
    """What a calculation gives in the wanted unit, or in the units as written; none if it measures another thing."""
    times = CLOCK in {wanted.unit, *(one.unit for one in operands)}
    unit = _MINUTE if times else wanted.unit
    measured = {one.unit for one in operands} - {"", PERCENT}
    if not wanted.numbers or (
        unit not in {"", PERCENT} and measured and not any(_is_alike(one, unit) for one in measured)
    ):
        return
    wholes = (_WHOLE, 1) if wanted.unit == PERCENT else (_WHOLE,)
    for into, whole in ((into, whole) for into in (unit, "") for whole in wholes):
        value = calculation.value([_number(one, into, whole) for one in operands])
        if value is None:
            continue
        if wanted.unit == CLOCK:
            value %= _MINUTES_OF_A_DAY
        elif times and wanted.unit:
            value = in_unit(value, unit, wanted.unit) or value
        yield value
        if wanted.unit == PERCENT:
            yield _WHOLE * value


def _is_alike(one: str, other: str) -> bool:
    return one in {CLOCK, other} or in_unit(1.0, one, other) is not None


def _number(operand: Figure, unit: str, whole: int) -> float:
    """Its number in that unit, if it can be converted; a percentage as a part of `whole`."""
    if operand.unit == PERCENT:
        return operand.number / whole
    converted = in_unit(operand.number, operand.unit, unit) if unit and operand.unit else None
    return operand.number if converted is None else converted

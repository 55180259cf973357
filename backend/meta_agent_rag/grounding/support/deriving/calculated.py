"""Figures of a claim by the calculation that the critic wrote: code checks its numbers, and what it gives."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from ....text.figures import Figure
from ....text.figures.arithmetic import Calculation
from ....text.figures.figure import CLOCK, in_unit, measurable, stands_in
from ....text.figures.lexicon import PERCENT
from ....text.figures.reading import scale
from ...operations import Operands, discover_operations, reaches, written
from ..statement import Statement
from .counting import counted

CONSTANTS = frozenset({2, 7, 10, 12, 24, 52, 60, 100, 365, 1000})
"""Common knowledge: days of a week, months of a year, twice."""
_CALENDAR = frozenset({0, 1, 3, 4, 5})
"""More of it: months and weeks of a quarter or month, working days, the first of several days."""
_WHOLE = 100
_POWERS = (0.001, 0.01, 100.0, 1000.0)
_MONEY = "currency:"
_MINUTE, _MINUTES_OF_A_DAY = "minute", 24 * 60


def calculated(
    wanted: Figure, calculations: Sequence[Calculation], at_hand: Operands, asked: Operands, named: Sequence[Statement]
) -> Iterator[str]:
    """The critic's calculations of a figure, written out.

    One counts if each of its numbers is `at_hand` (from the named words), in what was asked, a count of what the named
    words list, a constant, or the result of a calculation before it; one at least must be at hand.
    """
    stated, asked = [*at_hand], [*asked]
    for calculation in calculations:
        operands = _recognised(calculation, [*stated, *asked], named)
        if operands is None:
            continue
        results = [one for one in calculation.results if _gives(calculation, operands, one)]
        money = next((one.unit for one in operands if one.unit.startswith(_MONEY)), "")
        results = [replace(one, unit=one.unit or money) for one in results]
        if not any(stands_in(one, stated) for one in calculation.operands):
            asked += results
            continue
        yield from discover_operations()["duration"].steps(wanted, _with_one_span(calculation, operands))
        if _gives(calculation, operands, wanted):
            yield f"{calculation.written} = {wanted.written}"
        stated += results


def _gives(calculation: Calculation, operands: Operands, wanted: Figure) -> bool:
    """Does it give the figure, also if that is written in thousands or millions and its operands are not?"""
    return any(
        reaches(wanted, value * factor)
        for value in _values(calculation, operands, wanted)
        for factor in {1.0, scale(wanted)}
    )


def _recognised(calculation: Calculation, known: Operands, named: Sequence[Statement]) -> Operands | None:
    """The numbers of a calculation as the figures that they stand for; `None` if one stands for none."""
    units = {one.unit for one in (*calculation.operands, *calculation.results)}
    sources = [(one, _source(one, known, units)) for one in calculation.operands]
    dated = any(one.is_date for one in calculation.operands)
    if any(source is None and not _is_understood(one, known, named, dated=dated) for one, source in sources):
        return None
    operands = [source or one for one, source in sources]
    measured = [one.unit for one in operands if measurable(one.unit)]
    if measured and {"*", "/"}.isdisjoint(part for part in calculation.parts if isinstance(part, str)):
        return [replace(one, unit=one.unit or measured[0]) for one in operands]  # 15 minutes, another 35
    return operands


def _source(operand: Figure, known: Operands, units: Collection[str]) -> Figure | None:
    """The operand in the reading and unit in which a known figure has the same value; a bare one in any of `units`."""
    readings = [replace(operand, numbers=(number,)) for number in operand.numbers] or [operand]
    readings += [
        replace(one, numbers=(one.number * factor,))
        for one in readings
        for factor in sorted(set(map(scale, known)) - {1.0})
    ]
    if not operand.unit:
        readings += [replace(one, unit=unit) for one in readings for unit in sorted(filter(measurable, units))]
    pairs = ((reading, source) for reading in readings for source in known if stands_in(reading, (source,)))
    return next((replace(reading, unit=reading.unit or source.unit) for reading, source in pairs), None)


def _is_understood(operand: Figure, known: Operands, named: Sequence[Statement], *, dated: bool) -> bool:
    """Is it a constant, a percentage as a factor (0.2, 1.2, 0.8), a count, or the intervals between that many days?"""
    shares = [one.number / _WHOLE for one in known if one.unit == PERCENT]
    factors = [factor for share in shares for factor in (share, 1 + share, 1 - share)]
    factors += [one.number * power for one in known for power in _POWERS]  # 11.2 cents are 0.112
    factors += [one.number - 1 for one in known if dated and not one.unit and one.date is None]
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
    """What a calculation gives in the wanted unit, or in the units as written; none if one is money alone.

    A percentage added or subtracted at the end is one of what precedes it: £240 - 10 % is £216.
    """
    times = CLOCK in {wanted.unit, *(one.unit for one in operands)}
    unit = _MINUTE if times else wanted.unit
    measured = {one.unit for one in operands} - {"", PERCENT}
    if not wanted.numbers or (unit not in {"", PERCENT} and measured and not _may_give(unit, measured)):
        return
    wholes = (_WHOLE, 1) if wanted.unit == PERCENT else (_WHOLE,)
    for into, whole in ((into, whole) for into in (unit, "") for whole in wholes):
        for value in _results(calculation, operands, [_number(one, into, whole) for one in operands]):
            if wanted.unit == CLOCK:
                yield value % _MINUTES_OF_A_DAY
            elif times and wanted.unit:
                yield in_unit(abs(value), unit, wanted.unit) or value
            else:
                yield value
            if wanted.unit == PERCENT:
                yield _WHOLE * value


def _results(calculation: Calculation, operands: Operands, numbers: Sequence[float]) -> Iterator[float]:
    if (value := calculation.value(numbers)) is not None:
        yield value
    *_, sign, last = calculation.parts
    if last is calculation.operands[-1] and operands[-1].unit == PERCENT and sign in {"+", "-"}:
        share = operands[-1].number / _WHOLE
        before = calculation.without_last.value(numbers[:-1])
        if before is not None:
            yield before * (1 + share if sign == "+" else 1 - share)


def _may_give(unit: str, measured: Iterable[str]) -> bool:
    """Can it follow from figures in these units? Products change units, but only money gives money, and money alone."""
    money = [one.startswith(_MONEY) for one in measured]
    return any(money) if unit.startswith(_MONEY) else not all(money)


def _number(operand: Figure, unit: str, whole: int) -> float:
    """Its number in that unit, if it can be converted; a percentage as a part of `whole`."""
    if operand.unit == PERCENT:
        return operand.number / whole
    converted = in_unit(operand.number, operand.unit, unit) if unit and operand.unit else None
    return operand.number if converted is None else converted

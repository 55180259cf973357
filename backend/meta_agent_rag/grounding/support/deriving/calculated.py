"""Figures of a claim by the calculation that the critic wrote: code checks its numbers, and what it gives."""

import math
import re
from collections.abc import Collection, Iterator, Sequence
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
_IN_UNITS = frozenset(
    {
        (60, "minute"),
        (60, "second"),
        (24, "hour"),
        (7, "day"),
        (365, "day"),
        (5, "day"),
        (12, "month"),
        (3, "month"),
        (52, "week"),
    }
)
"""Constants that may be written with their unit."""
_WHOLE = 100
_MONEY = "currency:"
_MINUTE, _MINUTES_OF_A_DAY = "minute", 24 * 60
_BARE = frozenset({"", PERCENT})
_HOURS = re.compile(r"\d+ uur")
"""In Dutch, a time of day or a duration."""


def calculated(
    wanted: Figure, calculations: Sequence[Calculation], at_hand: Operands, asked: Operands, named: Sequence[Statement]
) -> Iterator[str]:
    """The critic's calculations of a figure, written out.

    One counts if each of its numbers is `at_hand` (from the named words), in what was asked, a count of what the named
    words list, a constant that multiplies or divides, a percentage as a factor, a hundredth of a known number (cents,
    "per 100 g"), or the result of a calculation before it; one at least must be at hand.
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
        yield from _dated(calculation, operands, wanted)
        if _gives(calculation, operands, wanted):
            yield f"{calculation.written} = {wanted.written}"
        stated += results


def _gives(calculation: Calculation, operands: Operands, wanted: Figure) -> bool:
    """Does it give the figure, also if that is written in thousands or millions and its operands are not?"""
    readings = [wanted]
    if wanted.unit == CLOCK and _HOURS.fullmatch(wanted.written):
        readings.append(replace(wanted, unit="hour", numbers=tuple(number / 60 for number in wanted.numbers)))
    return any(
        reaches(one, value * factor)
        for one in readings
        for value in _values(calculation, operands, one)
        for factor in {1.0, scale(one)}
    )


def _recognised(calculation: Calculation, known: Operands, named: Sequence[Statement]) -> Operands | None:
    """The numbers of a calculation as the figures that they stand for; `None` if one stands for none."""
    units = {one.unit for one in (*calculation.operands, *calculation.results)}
    sources = [(one, _source(one, known, units)) for one in calculation.operands]
    dated = any(one.is_date for one in calculation.operands)
    if any(source is None and not _is_understood(one, calculation, known, named, dated) for one, source in sources):
        return None
    operands = [source or _without_unit(one) for one, source in sources]
    measured = [one.unit for one in operands if measurable(one.unit)]
    if measured and calculation.is_sum:
        return [replace(one, unit=one.unit or measured[0]) for one in operands]  # 15 minutes, another 35
    return operands


def _source(operand: Figure, known: Operands, units: Collection[str]) -> Figure | None:
    """The operand in the reading and unit in which a known figure has the same value; a bare one in any of `units`."""
    factors = sorted(set(map(scale, known)) - {1.0})
    readings = [replace(operand, numbers=(number,)) for number in operand.numbers] or [operand]
    readings += [replace(one, numbers=(one.number * factor,)) for one in readings if one.numbers for factor in factors]
    if not operand.unit:
        readings += [replace(one, unit=unit) for one in readings for unit in sorted(filter(measurable, units))]
    pairs = ((reading, source) for reading in readings for source in known if stands_in(reading, (source,)))
    found = next(pairs, None)
    if found is None:
        return None
    reading, source = found
    return replace(reading, unit=reading.unit or source.unit.replace(PERCENT, ""))


def _without_unit(constant: Figure) -> Figure:
    """The constant as a bare number, unless it is a percentage or a price."""
    return constant if constant.unit == PERCENT or constant.unit.startswith(_MONEY) else replace(constant, unit="")


def _is_understood(
    operand: Figure, calculation: Calculation, known: Operands, named: Sequence[Statement], dated: bool
) -> bool:
    """Is it a constant, a percentage as a factor (0.2, 1.2, 0.8, 80 %), a hundredth, or a count?"""
    if operand.is_date:
        return False
    hundredths = [one.number / _WHOLE for one in known if one.numbers]
    if any(math.isclose(operand.number, one) for one in hundredths) or not operand.number:
        return True
    if operand.unit not in _BARE and (operand.number, operand.unit.partition(" / ")[0]) not in _IN_UNITS:
        return False
    shares = [one.number / _WHOLE for one in known if one.unit == PERCENT]
    factors = [factor for share in shares for factor in (share, 1 + share, 1 - share, _WHOLE * (1 - share))]
    factors += [one.number - 1 for one in known if dated and not one.unit and one.date is None]
    if any(math.isclose(operand.number, factor) for factor in factors):
        return True
    if operand.number in CONSTANTS | _CALENDAR:
        is_base = operand.number == 1 or (operand.number == _WHOLE and bool(shares))
        return is_base or dated or not calculation.adds(operand)
    return bool(counted(operand, named, freely=True))


def _dated(calculation: Calculation, operands: Operands, wanted: Figure) -> Iterator[str]:
    """What a calculation with dates gives: the time between two, or a date and all that is added to it."""
    dates = [one for one in operands if one.is_date]
    steps = discover_operations()["duration"].steps
    if len(dates) == len(operands):
        yield from steps(wanted, dates)
        return
    units = {one.unit for one in operands if one.unit}
    value = calculation.value([0.0 if one in dates else one.number for one in operands]) if dates else None
    if len(dates) != 1 or len(units) != 1 or not value:
        return
    (unit,) = units
    span = Figure(written=f"{written(abs(value))} {unit}s", start=0, end=0, numbers=(abs(value),), unit=unit)
    sign = "+" if value > 0 else "\u2212"
    yield from (one for one in steps(wanted, [dates[0], span]) if f" {sign} " in one)


def _values(calculation: Calculation, operands: Operands, wanted: Figure) -> Iterator[float]:
    """What a calculation gives in the wanted unit; if no units are mixed, also in the units as written."""
    if not wanted.numbers or not _may_give(calculation, operands, wanted):
        return
    times = CLOCK in {wanted.unit, *(one.unit for one in operands)}
    unit = _MINUTE if times else wanted.unit
    for into in (unit,) if _are_mixed(operands) and not calculation.is_product else (unit, ""):
        value = _result(calculation, operands, [_number(one, into) for one in operands])
        if value is None:
            continue
        if times:
            value = value if value >= 0 and wanted.unit != CLOCK else value % _MINUTES_OF_A_DAY
            yield in_unit(value, _MINUTE, wanted.unit) or value if wanted.unit != CLOCK else value
        elif wanted.unit == PERCENT:
            of_hundred = any(one.number == _WHOLE and one.unit == "" for one in operands)
            parts = calculation.divides or any(one.unit == PERCENT for one in operands)
            yield abs(value) if of_hundred or not parts else abs(_WHOLE * value)
        else:
            yield abs(value)


def _result(calculation: Calculation, operands: Operands, numbers: Sequence[float]) -> float | None:
    """Its value; a percentage added or subtracted at the end is one of what precedes it: £240 - 10 % is £216."""
    *_, sign, last = calculation.parts
    ends = last is calculation.operands[-1] and sign in {"+", "-"}
    if ends and operands[-1].unit == PERCENT and any(one.unit != PERCENT for one in operands):
        before = calculation.without_last.value(numbers[:-1])
        return None if before is None else before * (1 + numbers[-1] if sign == "+" else 1 - numbers[-1])
    return calculation.value(numbers)


def _may_give(calculation: Calculation, operands: Operands, wanted: Figure) -> bool:
    """Can the figure have its unit? A sum keeps it; products change it, but money comes from money of one currency."""
    measured = {one.unit for one in operands} - _BARE
    money = {one for one in measured if one.startswith(_MONEY)}
    if len(money) > 1 or (any(one.is_date for one in operands) and wanted.unit not in {"", "year"}):
        return False
    if wanted.unit.startswith(_MONEY):
        return money == {wanted.unit} or not measured
    if CLOCK in measured or wanted.unit == CLOCK:
        return CLOCK in measured and all(_is_alike(one, _MINUTE) for one in measured)
    if wanted.unit in _BARE or not measured:
        return True
    return measured != money and (not calculation.is_sum or all(_is_alike(one, wanted.unit) for one in measured))


def _are_mixed(operands: Operands) -> bool:
    """Do they measure one thing in several units?"""
    units = sorted({_MINUTE if one.unit == CLOCK else one.unit for one in operands} - _BARE)
    return any(_is_alike(one, other) for number, one in enumerate(units) for other in units[number + 1 :])


def _is_alike(one: str, other: str) -> bool:
    return one in {CLOCK, other} or in_unit(1.0, one, other) is not None


def _number(operand: Figure, unit: str) -> float:
    """Its number in that unit, if it can be converted; a percentage as a share."""
    if operand.unit == PERCENT:
        return operand.number / _WHOLE
    converted = in_unit(operand.number, operand.unit, unit) if unit and operand.unit else None
    return operand.number if converted is None else converted

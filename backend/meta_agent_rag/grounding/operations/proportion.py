"""The rule of three: what an amount gives if a known amount of the same kind gives a known result."""

from collections.abc import Iterator
from itertools import permutations

from ...text.figures import Figure
from ...text.figures.figure import CLOCK, in_unit
from . import Operands, Operation, reaches, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    numbers = [figure for figure in others if figure.numbers and figure.date is None and figure.unit != CLOCK]
    if len(numbers) != 3 or not wanted.unit:
        return
    for result, known, amount in permutations(numbers):
        alike = in_unit(amount.number, amount.unit, known.unit) if known.unit != wanted.unit else None
        given = in_unit(result.number, result.unit, wanted.unit)
        if alike and given and known.number and reaches(wanted, value := given * alike / known.number):
            yield f"{result.written} \u00d7 {amount.written} / {known.written} = {written(round(value, 4))}"


OPERATION = Operation(name="proportion", steps=_steps, picks=(3,))

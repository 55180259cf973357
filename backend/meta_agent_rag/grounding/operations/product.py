"""The product or quotient of two figures: of an amount and a count, or of a rate and what it is a rate of."""

from collections.abc import Iterator

from ...text.figures import Figure
from ...text.figures.figure import CLOCK, multiplied
from . import Operands, Operation, reaches, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    numbers = [figure for figure in others if figure.numbers and figure.date is None and figure.unit != CLOCK]
    if len(numbers) != 2:
        return
    one, other = numbers
    value = (
        one.number * other.number
        if wanted.unit in {one.unit, other.unit} | {""}
        else multiplied(one, other, wanted.unit)
    )
    if value is not None and reaches(wanted, value):
        yield f"{one.written} \u00d7 {other.written} = {written(round(value, 4))}"
    for whole, parts in ((one, other), (other, one)):
        rate = whole.unit == wanted.unit and parts.unit != wanted.unit
        if (rate or not parts.unit) and parts.number and reaches(wanted, whole.number / parts.number):
            yield f"{whole.written} / {parts.written} = {written(round(whole.number / parts.number, 4))}"


OPERATION = Operation(name="product", steps=_steps)

"""The product or quotient of two figures, one of them a bare number: a count, a frequency, or a number of parts."""

from collections.abc import Iterator

from ...text.figures import Figure
from . import Operands, Operation, reaches, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    numbers = [figure for figure in others if figure.numbers and figure.date is None]
    if len(numbers) != 2 or all(figure.unit not in {"", wanted.unit} for figure in numbers):
        return
    one, other = numbers
    if reaches(wanted, one.number * other.number):
        yield f"{one.written} \u00d7 {other.written} = {written(one.number * other.number)}"
    for whole, parts in ((one, other), (other, one)):
        if not parts.unit and parts.number and reaches(wanted, whole.number / parts.number):
            yield f"{whole.written} / {parts.written} = {written(round(whole.number / parts.number, 4))}"


OPERATION = Operation(name="product", steps=_steps)

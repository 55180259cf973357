"""The ratio of two figures of one kind: how many times as large one is as the other."""

from collections.abc import Iterator

from ...text.figures import Figure
from . import Operands, Operation, reaches, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    numbers = [figure for figure in others if figure.numbers and figure.date is None and figure.number]
    if wanted.unit or len(numbers) != 2 or numbers[0].unit != numbers[1].unit:
        return
    small, large = sorted(numbers, key=lambda figure: figure.number)
    if reaches(wanted, large.number / small.number):
        yield f"{large.written} / {small.written} = {written(round(large.number / small.number, 4))}"


OPERATION = Operation(name="ratio", steps=_steps)

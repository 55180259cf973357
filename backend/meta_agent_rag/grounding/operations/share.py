"""One figure as a percentage of another, the percentage by which it has changed, or a percentage of it."""

from collections.abc import Iterator
from itertools import permutations

from ...text.figures import Figure
from ...text.figures.lexicon import PERCENT
from . import Operands, Operation, reaches, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    numbers = [figure for figure in others if figure.numbers and figure.date is None and figure.number]
    if len(numbers) != 2:
        return
    for part, whole in permutations(numbers):
        if part.unit == PERCENT and whole.unit in {"", wanted.unit}:
            if reaches(wanted, value := part.number * whole.number / 100):
                yield f"{part.written} \u00d7 {whole.written} = {written(round(value, 4))}"
        elif wanted.unit == PERCENT and part.unit == whole.unit:
            share, change = 100 * part.number / whole.number, 100 * abs(part.number - whole.number) / whole.number
            if reaches(wanted, share):
                yield f"{part.written} / {whole.written} = {written(round(share, 2))} %"
            elif reaches(wanted, change):
                yield f"({part.written} \u2212 {whole.written}) / {whole.written} = {written(round(change, 2))} %"


OPERATION = Operation(name="share", steps=_steps)

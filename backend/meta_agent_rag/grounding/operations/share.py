"""One figure as a percentage of another, the percentage by which it has changed, a percentage of it, or the rest."""

from collections.abc import Iterator
from itertools import permutations

from ...text.figures import Figure
from ...text.figures.figure import in_unit
from ...text.figures.lexicon import PERCENT
from . import Operands, Operation, reaches, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    numbers = [figure for figure in others if figure.numbers and figure.date is None and figure.number]
    if len(numbers) == 1 and numbers[0].unit == wanted.unit == PERCENT:
        rest = 100 - numbers[0].number
        if reaches(wanted, rest):
            yield f"100 % \u2212 {numbers[0].written} = {written(rest)} %"
    if len(numbers) != 2:
        return
    for part, whole in permutations(numbers):
        amount = whole.number if "" in {whole.unit, wanted.unit} else in_unit(whole.number, whole.unit, wanted.unit)
        if part.unit == PERCENT and amount is not None:
            if reaches(wanted, value := part.number * amount / 100):
                yield f"{part.written} \u00d7 {whole.written} = {written(round(value, 4))}"
            for sign, factor in (("\u2212", 1 - part.number / 100), ("+", 1 + part.number / 100)):
                if reaches(wanted, value := factor * amount):
                    yield f"{whole.written} {sign} {part.written} = {written(round(value, 4))}"
        elif wanted.unit == PERCENT and (part.unit == whole.unit or "" in {part.unit, whole.unit}):
            share, change = 100 * part.number / whole.number, 100 * abs(part.number - whole.number) / whole.number
            if reaches(wanted, share):
                yield f"{part.written} / {whole.written} = {written(round(share, 2))} %"
            elif reaches(wanted, change):
                yield f"({part.written} \u2212 {whole.written}) / {whole.written} = {written(round(change, 2))} %"


OPERATION = Operation(name="share", steps=_steps, picks=(1, 2))

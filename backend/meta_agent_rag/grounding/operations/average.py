"""The mean of all figures of one kind."""

from collections.abc import Iterator

from ...text.figures import Figure
from . import Operands, Operation, reaches, same_kind, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    terms = [(figure, value) for figure, value in same_kind(wanted, others) if figure.date is None]
    if len(terms) < 2:
        return
    mean = sum(value for _, value in terms) / len(terms)
    if reaches(wanted, mean):
        yield f"({' + '.join(figure.written for figure, _ in terms)}) / {len(terms)} = {written(round(mean, 4))}"


OPERATION = Operation(name="average", steps=_steps)

"""The difference of two figures of one kind, or what remains of the first after subtracting the others."""

from collections.abc import Iterator

from ...text.figures import Figure
from . import Operands, Operation, reaches, same_kind, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    terms = sorted(
        ((figure, value) for figure, value in same_kind(wanted, others) if figure.date is None),
        key=lambda term: -term[1],
    )
    if len(terms) < 2:
        return
    rest = terms[0][1] - sum(value for _, value in terms[1:])
    if reaches(wanted, rest):
        shown = " \u2212 ".join(figure.written for figure, _ in terms)
        yield f"{shown} = {written(rest)}"


OPERATION = Operation(name="difference", steps=_steps)

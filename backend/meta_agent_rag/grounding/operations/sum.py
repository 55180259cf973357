"""The sum of all figures of one kind."""

from collections.abc import Iterator

from ...text.figures import Figure
from . import Operands, Operation, reaches, same_kind, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    same = same_kind(wanted, others)
    amounts = [(figure, value) for figure, value in same if figure.date is None]
    for terms in (amounts, same) if len(amounts) < len(same) else (amounts,):  # 1340 may be a year or an amount
        total = sum(value for _, value in terms)
        if len(terms) > 1 and reaches(wanted, total):
            yield f"{' + '.join(figure.written for figure, _ in terms)} = {written(total)}"


OPERATION = Operation(name="sum", steps=_steps, picks=(2, 3, 4))

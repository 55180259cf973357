"""The total of quantities times unit prices, or of other amounts for one each; one amount may have no quantity."""

from collections.abc import Iterator, Sequence

from ...text.figures import Figure
from . import Operands, Operation, reaches, same_kind, written


def _steps(wanted: Figure, others: Operands) -> Iterator[str]:
    amounts = [(figure, value) for figure, value in same_kind(wanted, others) if figure.unit and figure.date is None]
    priced = [figure for figure, _ in amounts]
    quantities = [one for one in others if one.numbers and one.date is None and one not in priced]
    if not wanted.unit or not quantities or not 0 <= len(amounts) - len(quantities) <= 1:
        return
    for single in range(len(amounts)) if len(amounts) > len(quantities) else (len(amounts),):
        counts: Sequence[Figure | None] = [*quantities[:single], None, *quantities[single:]]
        terms = list(zip(counts, amounts, strict=False))
        if len(terms) > 1 and reaches(wanted, value := sum((n.number if n else 1) * one for n, (_, one) in terms)):
            shown = [f"{n.written} \u00d7 {figure.written}" if n else figure.written for n, (figure, _) in terms]
            yield f"{' + '.join(shown)} = {written(round(value, 4))}"


OPERATION = Operation(name="total", steps=_steps, picks=(3, 4))

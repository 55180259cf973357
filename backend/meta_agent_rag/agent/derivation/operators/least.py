"""Which candidate has the smallest number."""

from collections.abc import Sequence

from ..comparing import extreme, greater, lower_is_better, smaller
from ..operator import Operand, Operator, Outcome, candidates
from ..values import as_quantity


def _least(question: str, operands: Sequence[Operand]) -> Outcome | None:
    if lower_is_better(question):
        return extreme(operands, as_quantity, greater, "a lower rank")
    return extreme(operands, as_quantity, smaller, "less")


OPERATOR = Operator(
    name="least",
    when="the candidate with the smallest number is the answer",
    combine=_least,
    check=candidates,
    compares=True,
)

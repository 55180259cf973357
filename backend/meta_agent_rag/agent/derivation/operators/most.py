"""Which candidate has the greatest number."""

from collections.abc import Sequence

from ..comparing import extreme, greater, lower_is_better, smaller, two_candidates
from ..operator import Operand, Operator, Outcome, candidates
from ..values import as_quantity


def _most(question: str, operands: Sequence[Operand]) -> Outcome | None:
    if lower_is_better(question):
        return extreme(operands, as_quantity, smaller, "a higher rank")
    return extreme(operands, as_quantity, greater, "more")


OPERATOR = Operator(
    name="most",
    when="the candidate with the greatest number is the answer",
    combine=_most,
    check=candidates,
    compares=True,
    examples=(
        (
            "Which has more floors, Alder Tower or Quay House?",
            two_candidates("most", "Alder Tower", "Quay House", "How many floors does NAME have?"),
        ),
    ),
)

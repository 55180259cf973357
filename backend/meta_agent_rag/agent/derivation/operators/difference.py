"""The difference between two values: years between two dates, or how many more."""

from collections.abc import Sequence

from ....grounding.answer_kind import kind_asked
from ....text.dates import as_date
from ....text.figures.figure import in_unit
from ..comparing import two_candidates
from ..operator import Operand, Operator, Outcome, two_chains
from ..plan import Plan
from ..values import as_quantity


def _difference(question: str, operands: Sequence[Operand]) -> Outcome | None:
    one, other = operands[0].value, operands[1].value
    first, second = as_date(one), as_date(other)
    if first is not None and second is not None:
        answer = abs(first.year - second.year)
    else:
        left, right = as_quantity(one), as_quantity(other)
        if left is None or right is None:
            return None
        converted = in_unit(right.number, right.unit, left.unit)
        if converted is None:
            return None
        apart = abs(left.number - converted)
        answer = int(apart) if apart == int(apart) else round(apart, 4)  # type: ignore[assignment]
    return Outcome(answer=str(answer), because=f"between {one} and {other}: {answer}")


def _check(question: str, plan: Plan) -> str | None:
    if kind_asked(question) != "number":
        return "the question does not ask for a number"
    return two_chains(question, plan) if len(plan.chains) != 2 else None


OPERATOR = Operator(
    name="difference",
    when="the question asks how many years lie between two things, or how many more one has",
    combine=_difference,
    check=_check,
    compares=True,
    examples=(
        (
            "How many years after Ann Bode was Karl Lutz born?",
            two_candidates("difference", "Ann Bode", "Karl Lutz", "When was NAME born?"),
        ),
    ),
)

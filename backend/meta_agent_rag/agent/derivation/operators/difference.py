"""The difference between two values: the time between two dates, or how many more."""

import re
from collections.abc import Sequence
from datetime import date

from ....grounding.answer_kind import kind_asked
from ....text.dates import Date, as_date
from ....text.figures import in_unit
from ..derivation import Plan
from ..operator import Operand, Operator, Outcome, two_candidates, two_chains
from ..values import as_quantity

_UNIT_ASKED = re.compile(r"\bhow\s+many\s+(?:\w+\s+)?(days?|weeks?|months?)\b", re.IGNORECASE)
_VAGUE = re.compile(r"\b(?:BC|BCE|AD|CE)\b|(?i:\bcentur(?:y|ies)\b|\b\d{3,4}s\b)")
"""Times that are not read as a date: an era, a century, a decade."""


def _difference(question: str, operands: Sequence[Operand]) -> Outcome | None:
    one, other = operands[0].value, operands[1].value
    first, second = as_date(one), as_date(other)
    if first is not None and second is not None:
        unit = _UNIT_ASKED.search(question)
        answer = _apart(first, second, unit[1].lower()[0] if unit else "")
        if answer is None:
            return None
    elif _VAGUE.search(one) or _VAGUE.search(other):
        return None
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


def _apart(first: Date, second: Date, unit: str) -> int | None:
    """The years between two dates, or the `d`ays, `w`eeks or `m`onths; `None` if they are not precise enough."""
    if not unit:
        return abs(first.year - second.year)
    if not (first.month and second.month):
        return None
    if unit == "m":
        return abs(12 * (first.year - second.year) + first.month - second.month)
    try:
        days = [date(one.year, one.month, one.day).toordinal() for one in (first, second)]
    except ValueError:
        return None
    apart = abs(days[0] - days[1])
    return apart if unit == "d" else apart // 7


def _check(question: str, plan: Plan) -> str | None:
    if kind_asked(question) != "number":
        return "the question does not ask for a number"
    return two_chains(question, plan) or ("it relates two things, not more" if len(plan.chains) > 2 else None)


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

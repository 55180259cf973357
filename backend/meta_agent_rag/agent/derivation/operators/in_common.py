"""What two chains share: the profession that two people have in common, for instance."""

import re
from collections.abc import Sequence

from ..derivation import Plan
from ..operator import Operand, Operator, Outcome, candidates, two_candidates, two_chains
from ..values import asks_yes_or_no, same_value

_SHARED = re.compile(r"\b(?:both|common|share[sd]?|same|mutual)\b|\band\b", re.IGNORECASE)
_SEPARATOR = re.compile(r"\s*(?:,|;|\band\b|&|/)\s*")


def _common(question: str, operands: Sequence[Operand]) -> Outcome | None:
    first, *others = [[item for item in _SEPARATOR.split(operand.value) if item] for operand in operands]
    shared = [item for item in first if all(any(same_value(item, one) for one in other) for other in others)]
    if not shared:
        return None
    answer = ", ".join(shared)
    return Outcome(answer=answer, because=f"{' and '.join(operand.of for operand in operands)} share: {answer}")


def _check(question: str, plan: Plan) -> str | None:
    if asks_yes_or_no(question) is None:
        return "the question asks for a yes or no"
    if not _SHARED.search(question):
        return "the question does not ask what two things have in common"
    return two_chains(question, plan) or candidates(question, plan)


OPERATOR = Operator(
    name="common",
    when="the question asks what two things have in common",
    combine=_common,
    check=_check,
    examples=(
        (
            "What profession do Mary Stone and Paul Reed share?",
            two_candidates("common", "Mary Stone", "Paul Reed", "What are the professions of NAME?"),
        ),
    ),
)

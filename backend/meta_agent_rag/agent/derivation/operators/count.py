"""The number of items in a list."""

import re
from collections.abc import Sequence

from ....grounding.answer_kind import kind_asked
from ..derivation import Chain, Plan
from ..operator import Operand, Operator, Outcome, one_chain
from ..values import as_quantity

_SEPARATOR = re.compile(r"\s*(?:,|;|\band\b|&)\s*")


def _count(question: str, operands: Sequence[Operand]) -> Outcome | None:
    (operand,) = operands
    items = [item for item in _SEPARATOR.split(operand.value) if item]
    if len(items) < 2 and (stated := as_quantity(operand.value)) is not None:
        return Outcome(answer=operand.value, because=f"stated: {stated.number:g}")
    return Outcome(answer=str(len(items)), because=f"{', '.join(items)}: {len(items)}") if items else None


def _check(question: str, plan: Plan) -> str | None:
    if kind_asked(question) != "number":
        return "the question does not ask for a number"
    return one_chain(question, plan)


OPERATOR = Operator(
    name="count",
    when="the last fact asks for a list, and the question asks how many things are in it",
    combine=_count,
    check=_check,
    examples=(
        (
            "How many children did the founder of Alder Press have?",
            Plan(
                operator="count",
                chains=(Chain(of="", facts=("Who founded Alder Press?", "Who are the children of #?")),),
            ),
        ),
    ),
)

"""What follows from the end of a single chain: the value itself, or the number of things in it."""

import re
from collections.abc import Sequence

from ....grounding.answer_kind import kind_asked
from ....text.figures import in_digits
from ..derivation import Chain, Plan
from ..operator import Operand, Operator, Outcome, one_chain
from ..values import as_quantity, numbers_in

_SEPARATOR = re.compile(r"\s*(?:,(?!\d)|;|\band\b|&)\s*")
_STATED = re.compile(r"\d")


def _count(question: str, operands: Sequence[Operand]) -> Outcome | None:
    (operand,) = operands
    items = [item for item in _SEPARATOR.split(operand.value) if item]
    stated = as_quantity(operand.value)
    if stated is not None and (len(items) < 2 or _STATED.match(in_digits(operand.value))):
        if len(numbers_in(operand.value)) > 1:
            return None  # "two sons and three daughters"
        return Outcome(
            answer=operand.value if len(items) < 2 else f"{stated.number:g}", because=f"stated: {stated.number:g}"
        )
    return Outcome(answer=str(len(items)), because=f"{', '.join(items)}: {len(items)}") if items else None


def _check_count(question: str, plan: Plan) -> str | None:
    if kind_asked(question) != "number":
        return "the question does not ask for a number"
    return one_chain(question, plan)


def _last(question: str, operands: Sequence[Operand]) -> Outcome | None:
    (operand,) = operands
    return Outcome(answer=operand.value, because=" → ".join(operand.values)) if operand.value else None


def _plan(*facts: str) -> Plan:
    return Plan(operator="last", chains=(Chain(of="", facts=facts),))


OPERATOR = (
    Operator(
        name="count",
        when="the last fact asks for a list, and the question asks how many things are in it",
        combine=_count,
        check=_check_count,
        examples=(
            (
                "How many children did the founder of Alder Press have?",
                Plan(
                    operator="count",
                    chains=(Chain(of="", facts=("Who founded Alder Press?", "Who are the children of #?")),),
                ),
            ),
        ),
    ),
    Operator(
        name="last",
        when="the value of the last fact is the answer",
        combine=_last,
        check=one_chain,
        examples=(
            (
                "Where was the director of film Salt Road born?",
                _plan("Who directed the film Salt Road?", "Where was # born?"),
            ),
            (
                "Who is the paternal grandmother of Otto Of Wied?",
                _plan("Who is the father of Otto Of Wied?", "Who is the mother of #?"),
            ),
            (
                "When was Jane Holt's husband born?",
                _plan("Who is the husband of Jane Holt?", "When was # born?"),
            ),
            (
                "What year was the novel published on which the 1999 film directed by Lena Marsh is based?",
                _plan(
                    "Which 1999 film was directed by Lena Marsh?",
                    "On which novel is # based?",
                    "In what year was # published?",
                ),
            ),
            (
                "Who is the maternal grandfather of Ada Holm?",
                _plan("Who is the mother of Ada Holm?", "Who is the father of #?"),
            ),
            (
                "Where did Karl Brandt, 2Nd Earl Of Lund's mother die?",
                _plan("Who is the mother of Karl Brandt, 2Nd Earl Of Lund?", "Where did # die?"),
            ),
            (
                "The actor who played Tom Reed in the film Cold Harbour was born in which city?",
                _plan("Which actor played Tom Reed in the film Cold Harbour?", "In which city was # born?"),
            ),
        ),
    ),
)

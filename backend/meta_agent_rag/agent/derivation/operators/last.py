"""The end of a chain is the answer."""

from collections.abc import Sequence

from ..derivation import Chain, Plan
from ..operator import Operand, Operator, Outcome, one_chain


def _last(question: str, operands: Sequence[Operand]) -> Outcome | None:
    (operand,) = operands
    return Outcome(answer=operand.value, because=" → ".join(operand.values)) if operand.value else None


def _plan(*facts: str) -> Plan:
    return Plan(operator="last", chains=(Chain(of="", facts=facts),))


OPERATOR = Operator(
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
)

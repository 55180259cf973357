"""Do two or more chains end at the same value? Yes or no."""

from collections.abc import Sequence

from ..derivation import Plan
from ..operator import Operand, Operator, Outcome, two_candidates, two_chains
from ..values import asks_yes_or_no, same_value, verdict


def _same(question: str, operands: Sequence[Operand]) -> Outcome | None:
    said = [verdict(operand.value) for operand in operands]
    if all(one is not None for one in said):  # each chain ends with a yes or no: is it yes for all of them?
        because = "; ".join(f"{operand.of}: {operand.value}" for operand in operands)
        return Outcome(answer="yes" if all(said) else "no", because=because)
    first, *others = operands
    verdicts = [same_value(first.value, other.value) for other in others]
    if any(verdict is None for verdict in verdicts):
        return None
    alike = all(verdicts)
    values = " and ".join(operand.value for operand in operands)
    return Outcome(answer="yes" if alike else "no", because=f"{values} are {'the same' if alike else 'different'}")


def _check(question: str, plan: Plan) -> str | None:
    return two_chains(question, plan) or asks_yes_or_no(question)


OPERATOR = Operator(
    name="same",
    when="the question asks, for a yes or no, whether two things have something in common",
    combine=_same,
    check=_check,
    compares=True,
    examples=(
        (
            "Do the bands Red Moth and The Vales come from the same country?",
            two_candidates("same", "Red Moth", "The Vales", "Which country is the band NAME from?"),
        ),
        (
            "Do director of film Blue Hill and director of film Grey Water have the same nationality?",
            two_candidates(
                "same", "Blue Hill", "Grey Water", "Who directed the film NAME?", "What is the nationality of #?"
            ),
        ),
    ),
)

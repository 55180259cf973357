"""Is something true of everything that the question names? Each chain ends with a yes-or-no fact."""

from collections.abc import Sequence

from ..derivation import Plan
from ..operator import Operand, Operator, Outcome, two_candidates
from ..values import asks_yes_or_no, verdict


def _both(question: str, operands: Sequence[Operand]) -> Outcome | None:
    verdicts = [verdict(operand.value) for operand in operands]
    if any(one is None for one in verdicts):
        return None
    said = "; ".join(f"{operand.of}: {operand.value}" for operand in operands)
    return Outcome(answer="yes" if all(verdicts) else "no", because=said)


def _check(question: str, plan: Plan) -> str | None:
    return asks_yes_or_no(question)


OPERATOR = Operator(
    name="both",
    when="the question asks, for a yes or no, whether one thing is true of everything that it names",
    combine=_both,
    check=_check,
    examples=(
        (
            "Are both Tern Island and Port Rees in Norway?",
            two_candidates("both", "Tern Island", "Port Rees", "Is NAME in Norway?"),
        ),
    ),
)

"""Which of the candidates that a question names has the most extreme date or number."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from ....text.dates import as_date, later
from ....text.figures import in_unit
from ..operator import Operand, Operator, Outcome, candidates, two_candidates
from ..values import Quantity, as_quantity

V = TypeVar("V")
_RANK = r"(?:rank(?:s|ed|ings?)?|seed(?:ed)?|position|chart(?:s|ed)?|finish(?:ed)?|placed?)"
_COMPARED = r"(?:high(?:er|est)|best|better|top|low(?:er|est)|worst|worse)"
_RANKED = re.compile(
    rf"\b{_RANK}\s+(?:the\s+)?{_COMPARED}\b|\b{_COMPARED}[\s-]+(?:(?:in|on|the|world|chart)\s+){{0,3}}{_RANK}\b",
    re.IGNORECASE,
)
_LOWEST_RANK = 1000


def extreme(
    operands: Sequence[Operand], read: Callable[[str], V | None], beats: Callable[[V, V], bool | None], words: str
) -> Outcome | None:
    """The operand with the most extreme value; `None` if a value cannot be read or two cannot be ordered."""
    values = [read(operand.value) for operand in operands]
    known = [value for value in values if value is not None]
    if len(known) < len(operands):
        return None
    for operand, own in zip(operands, known, strict=True):
        if all(beats(own, value) for value in known if value is not own):
            others = " and ".join(other.value for other in operands if other is not operand)
            return Outcome(answer=operand.of, because=f"{operand.value} is {words} than {others}: {operand.of}")
    return None


def latest(question: str, operands: Sequence[Operand]) -> Outcome | None:
    """The candidate with the latest date."""
    return extreme(operands, as_date, later, "later")


def earliest(question: str, operands: Sequence[Operand]) -> Outcome | None:
    """The candidate with the earliest date."""
    return extreme(operands, as_date, lambda one, other: later(other, one), "earlier")


def most(question: str, operands: Sequence[Operand]) -> Outcome | None:
    """The candidate with the greatest number; for ranks, the one with the smallest."""
    if lower_is_better(question, operands):
        return extreme(operands, as_quantity, smaller, "a higher rank")
    return extreme(operands, as_quantity, greater, "more")


def least(question: str, operands: Sequence[Operand]) -> Outcome | None:
    """The candidate with the smallest number; for ranks, the one with the greatest."""
    if lower_is_better(question, operands):
        return extreme(operands, as_quantity, greater, "a lower rank")
    return extreme(operands, as_quantity, smaller, "less")


def greater(one: Quantity, other: Quantity) -> bool | None:
    """Whether one quantity is greater; `None` if they measure different things or are equal."""
    number = in_unit(other.number, other.unit, one.unit)
    return None if number is None or one.number == number else one.number > number


def smaller(one: Quantity, other: Quantity) -> bool | None:
    """Whether one quantity is smaller; `None` if they measure different things or are equal."""
    verdict = greater(one, other)
    return None if verdict is None else not verdict


def lower_is_better(question: str, operands: Sequence[Operand]) -> bool:
    """Whether the question asks for a rank, where a lower number is a higher rank, and the values may be ranks."""
    if not _RANKED.search(question):
        return False
    values = [as_quantity(operand.value) for operand in operands]
    return all(value is None or (not value.unit and value.number <= _LOWEST_RANK) for value in values)


OPERATOR = (
    Operator(
        name="earliest",
        when="the candidate with the earliest date is the answer (older: born earlier)",
        combine=earliest,
        check=candidates,
        compares=True,
        examples=(
            (
                "Who is older, Ann Bode or Karl Lutz?",
                two_candidates("earliest", "Ann Bode", "Karl Lutz", "When was NAME born?"),
            ),
        ),
    ),
    Operator(
        name="latest",
        when="the candidate with the latest date is the answer (younger: born later)",
        combine=latest,
        check=candidates,
        compares=True,
        examples=(
            (
                "Which film has the director who died later, Blue Hill or Night Train (1950 Film)?",
                two_candidates(
                    "latest", "Blue Hill", "Night Train (1950 Film)", "Who directed the film NAME?", "When did # die?"
                ),
            ),
            (
                "Which film whose director is younger, Grey Water or The Orchard?",
                two_candidates(
                    "latest", "Grey Water", "The Orchard", "Who directed the film NAME?", "When was # born?"
                ),
            ),
        ),
    ),
    Operator(
        name="least",
        when="the candidate with the smallest number is the answer",
        combine=least,
        check=candidates,
        compares=True,
    ),
    Operator(
        name="most",
        when="the candidate with the greatest number is the answer",
        combine=most,
        check=candidates,
        compares=True,
        examples=(
            (
                "Which has more floors, Alder Tower or Quay House?",
                two_candidates("most", "Alder Tower", "Quay House", "How many floors does NAME have?"),
            ),
        ),
    ),
)

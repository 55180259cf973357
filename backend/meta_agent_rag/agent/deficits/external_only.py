"""The evidence suffices, memory does not: answer strictly from the references."""

from ..state import Signals
from .deficit import Deficit


def _not_from_the_evidence(signals: Signals) -> bool:
    return signals.verbatim is None or signals.verbatim < 1.0


DEFICIT = Deficit(
    name="external_only",
    when="the passages hold the answer, and the draft says something that they do not say",
    directive="Answer from the passages alone: copy the sentence that says it, and take the answer from that.",
    answer_mode="evidence",
    retrieves=False,
    examples=("the draft gives a birth year that no passage states, while a passage states another",),
    quadrant=(False, True),
    priority=20,
    heuristic=_not_from_the_evidence,
)

"""Neither memory nor evidence suffices: look for what is missing."""

from ..state import Signals
from .deficit import Deficit


def _nothing_to_stand_on(signals: Signals) -> bool:
    return signals.abstained or signals.evidence_passages == 0


DEFICIT = Deficit(
    name="insufficient_knowledge",
    when="a fact that some hop of the question needs is neither in the evidence nor known",
    directive="New evidence may stand at the end. Find the missing fact in it, then join it to what was known.",
    answer_mode="evidence_and_memory",
    retrieves=True,
    examples=(
        "the evidence names the film's director but says nothing of where she was born",
        "no passage mentions the second of the two persons to compare",
    ),
    quadrant=(False, False),
    priority=10,
    heuristic=_nothing_to_stand_on,
)

"""Both suffice and the reasoning failed: derive the answer anew, step by step."""

from ..state import Signals
from .deficit import Deficit


def _facts_are_there(signals: Signals) -> bool:
    return signals.verbatim == 1.0


DEFICIT = Deficit(
    name="reasoning_error",
    when="the needed facts are at hand, and the draft joins, compares or reads them wrongly",
    directive=(
        "Derive the answer anew, step by step: settle each hop from the evidence, check each statement of the draft "
        "against it, and conclude only from what holds."
    ),
    answer_mode="evidence_and_memory",
    retrieves=False,
    examples=(
        "both dates are quoted, and the later one is called the earlier",
        "the draft answers with the entity of the first hop and stops there",
    ),
    quadrant=(True, True),
    priority=30,
    heuristic=_facts_are_there,
)

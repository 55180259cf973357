"""Neither memory nor evidence suffices: look for what is missing."""

from ..state import Signals
from .deficit import Deficit, Finding, Findings


def _nothing_to_stand_on(signals: Signals) -> bool:
    return signals.abstained or signals.evidence_passages == 0


def _an_open_fact(findings: Findings) -> Finding | None:
    fact = findings.to_search
    return Finding(why=f"the passages do not settle {fact.asked!r}: {fact.open}", fact=fact) if fact else None


DEFICIT = Deficit(
    name="insufficient_knowledge",
    when="the passages do not hold a fact that some hop of the question needs",
    directive="Find the fact that the draft lacked, in the last passages first, and join it to what the others say.",
    answer_mode="evidence_and_memory",
    retrieves=True,
    examples=("a passage names the film's director, and none says where she was born",),
    quadrant=(False, False),
    priority=10,
    heuristic=_nothing_to_stand_on,
    rule=_an_open_fact,
    repair="look_up",
)

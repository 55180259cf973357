"""The model knows, the evidence does not say: answer from memory."""

from ..state import Signals
from .deficit import Deficit, Finding, Findings


def _evidence_leads_astray(signals: Signals) -> bool:
    return signals.verbatim == 0.0 and signals.agreement is True


def _a_fact_that_no_search_found(findings: Findings) -> Finding | None:
    fact = findings.to_remember
    if fact is None:
        return None
    return Finding(why=f"no passage settles {fact.asked!r}, and no search is left: {fact.open}", fact=fact)


DEFICIT = Deficit(
    name="internal_only",
    when="the fact is well known, and the passages are about something else and lead the draft astray",
    directive="The passages are left aside. Answer from what you know, and keep to the facts stated here.",
    answer_mode="memory",
    retrieves=False,
    examples=("the question is about a famous person, and every passage is about a namesake",),
    quadrant=(True, False),
    priority=40,
    last_resort=True,
    heuristic=_evidence_leads_astray,
    rule=_a_fact_that_no_search_found,
    repair="look_up",
)

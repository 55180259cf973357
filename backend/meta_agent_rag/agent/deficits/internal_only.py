"""The model knows, the evidence does not say: answer from memory."""

from ..state import Diagnosis, Repair, State
from .deficit import Deficit, Findings


def detect(findings: Findings) -> Diagnosis | None:
    """A fact is open, and no search for it is left."""
    fact = findings.to_remember
    if fact is None:
        return None
    why = f"no passage settles {fact.asked!r}, and no search is left: {fact.open}"
    return Diagnosis(rationale=why, about=fact.asked, insists=True)


def repair(state: State, findings: Findings) -> Repair:
    """Ask the model's memory for the fact; without one, adopt what was found, or write again from memory."""
    if findings.by_facts and findings.about is None and findings.vote is not None:
        return Repair(adopt=findings.derivation.answer or findings.vote.elected)
    return Repair(ask=findings.about)


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
    heuristic=lambda signals: signals.verbatim == 0.0 and signals.agreement is True,
    detect=detect,
    repair=repair,
)

"""Neither memory nor evidence suffices: look for what is missing."""

from ..state import Diagnosis, Repair, State
from .deficit import Deficit, Findings


def detect(findings: Findings) -> Diagnosis | None:
    """A fact is open and has not been searched for, or a search has found it since the draft was written."""
    if (fact := findings.to_search) is not None:
        why = f"the passages do not settle {fact.asked!r}: {fact.open}"
        return Diagnosis(rationale=why, about=fact.asked, suggested_queries=(fact.asked,), insists=True)
    if (fact := findings.found_since) is not None and findings.unsettled is None:
        why = f"the draft's passages do not settle {fact.asked!r}; a search has found {fact.value!r}"
        return Diagnosis(rationale=why, about=fact.asked, insists=True)
    return None


def repair(state: State, findings: Findings) -> Repair:
    """Search for what is missing, then ask for the fact again or, if the diagnosis names none, write again.

    If it has been found since, adopt what follows.
    """
    found = findings.found_since
    if found is not None and findings.about == found.asked:
        return Repair(adopt=findings.derivation.answer, search=())
    return Repair(ask=findings.about)


DEFICIT = Deficit(
    name="insufficient_knowledge",
    when="the passages do not hold a fact that some hop of the question needs",
    directive="Find the fact that the draft lacked, in the last passages first, and join it to what the others say.",
    answer_mode="evidence_and_memory",
    retrieves=True,
    examples=("a passage names the film's director, and none says where she was born",),
    quadrant=(False, False),
    priority=10,
    heuristic=lambda signals: signals.abstained or signals.evidence_passages == 0,
    detect=detect,
    repair=repair,
)

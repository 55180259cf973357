"""Both suffice and the reasoning failed: derive the answer again, step by step."""

from ..state import Diagnosis, Repair, State
from .deficit import Deficit, Findings


def detect(findings: Findings) -> Diagnosis | None:
    """No fact is left to settle, and the draft stops one hop short or contradicts what was elected."""
    if findings.unsettled is not None:
        return None
    first = not any(name == DEFICIT.name for name, _ in findings.tried)
    if (earlier := findings.names_an_earlier_fact) is not None:
        return Diagnosis(rationale=f"the draft stops at {earlier.asked!r}", about=earlier.asked, insists=first)
    why = findings.derivation.because if findings.follows else "the other routes lead to another answer"
    return Diagnosis(rationale=why, insists=first)


def repair(state: State, findings: Findings) -> Repair:
    """Adopt what follows from the facts, or what was elected; after the critic's diagnosis, write again."""
    return Repair(adopt=findings.vote.elected if findings.by_facts and findings.vote is not None else None)


DEFICIT = Deficit(
    name="reasoning_error",
    when="the passages hold the facts, and the draft joins, compares or reads them wrongly",
    directive=(
        "Set the draft aside and derive the answer anew, hop by hop; check at the end that it is what the question "
        "asks for, and not the answer of an earlier hop."
    ),
    answer_mode="evidence_and_memory",
    retrieves=False,
    examples=("the draft answers with the director, and the question asks for the director's birthplace",),
    quadrant=(True, True),
    priority=30,
    heuristic=lambda signals: signals.verbatim == 1.0,
    detect=detect,
    repair=repair,
)

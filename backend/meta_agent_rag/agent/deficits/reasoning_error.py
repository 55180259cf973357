"""Both suffice and the reasoning failed: derive the answer again, step by step."""

from ..state import Signals
from .deficit import Deficit, Finding, Findings


def _facts_are_there(signals: Signals) -> bool:
    return signals.verbatim == 1.0


def _parts_from_the_facts(findings: Findings) -> Finding | None:
    if findings.unsettled is not None:
        return None
    if (earlier := findings.names_an_earlier_fact) is not None:
        return Finding(why=f"the draft stops at {earlier.asked!r}", fact=earlier)
    return Finding(why=findings.derivation.because if findings.follows else "the other routes lead to another answer")


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
    heuristic=_facts_are_there,
    rule=_parts_from_the_facts,
    repair="conclude",
)

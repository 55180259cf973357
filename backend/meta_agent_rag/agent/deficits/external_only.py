"""The evidence suffices, memory does not: answer strictly from the references."""

from ..routes.vote import same
from ..state import Diagnosis, Repair, Signals, State
from .deficit import Deficit, Findings


def _not_from_the_evidence(signals: Signals) -> bool:
    return signals.verbatim is None or signals.verbatim < 1.0


def detect(findings: Findings) -> Diagnosis | None:
    """The passages give the last fact, and the draft contradicts it; or, without facts, the draft quotes nothing."""
    if findings.unsettled is not None:
        return None
    fact = findings.last_fact
    otherwise = fact is not None and not same(fact.value, findings.draft.short_answer)
    if fact is not None and otherwise and findings.names_an_earlier_fact is None:
        return Diagnosis(rationale=f"{fact.asked!r} is {fact.value!r} in the passages", about=fact.asked)
    if findings.derivation.plan is None and _not_from_the_evidence(findings.signals):
        return Diagnosis(rationale="the draft quotes no passage that gives its answer")
    return None


def repair(state: State, findings: Findings) -> Repair:
    """Write again; after a diagnosis by facts, from the cited passages alone."""
    return Repair(cited=findings.by_facts)


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
    detect=detect,
    repair=repair,
)

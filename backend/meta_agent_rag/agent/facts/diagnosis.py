"""Chooses the deficit from the facts: rules in code, which also identify the fact concerned."""

from collections.abc import Sequence

from ..context import Context
from ..state import Diagnosis, RepairPlan, Round, State
from .findings import Findings


def findings_of(state: State, context: Context, round_: Round) -> Findings:
    """Everything known about the draft of an examined round."""
    assert round_.derivation is not None
    assert round_.vote is not None
    assert round_.signals is not None
    plans = [one.plan for one in (*state.get("rounds", ()), round_) if one.plan is not None]
    return Findings(
        question=state["question"],
        draft=round_.draft,
        signals=round_.signals,
        derivation=round_.derivation,
        vote=round_.vote,
        searched=_repaired(plans, from_memory=False),
        remembered=_repaired(plans, from_memory=True),
        tried=frozenset((plan.deficit, plan.about) for plan in plans),
        may_search=context.may_search,
        may_remember=not context.grounded,
    )


def diagnose_from_facts(findings: Findings, context: Context) -> Diagnosis:
    """The deficit chosen by the facts, the fact concerned, and what to search for."""
    deficit, finding = context.deficits.found(findings)
    return Diagnosis(
        deficit=deficit.name,
        rationale=finding.why,
        error_type="none",
        suggestion="",
        suggested_queries=(finding.fact.asked,) if finding.fact is not None and deficit.retrieves else (),
        source="facts",
        about=finding.about,
    )


def _repaired(plans: Sequence[RepairPlan], *, from_memory: bool) -> frozenset[str]:
    """The facts that earlier rounds already searched for or recalled from memory."""
    return frozenset(
        plan.about for plan in plans if plan.about is not None and (plan.answer_mode == "memory") == from_memory
    )

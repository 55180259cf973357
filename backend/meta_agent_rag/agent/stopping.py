"""The rules that end the loop: satisfied, out of rounds or time, converged, oscillating, or nothing to gain.

Drafts converge by the Jaccard similarity of consecutive full answers. Token sets alone cannot distinguish "A came
before B" from "B came before A", so the short answers must be equal as well.
"""

import time
from collections.abc import Sequence

from ..errors import DeadlineError
from ..grounding.short_answer import same_answer
from ..llm.ledger import LedgerRow
from ..text.normalise import jaccard, normalised
from .context import Context
from .state import Draft, Round, State, StopReason
from .voting import findings_of


def settled_without_a_model(state: State, context: Context) -> StopReason | None:
    """The reason to stop if memory is off and NOT FOUND is the answer, found without asking a model."""
    plan = state.get("plan")
    if not context.grounded:
        return None
    if plan is not None and plan.answer_mode == "memory":
        return "not_in_evidence"
    return None if state.get("evidence") else "no_evidence"


def reason_to_stop(state: State, context: Context, round_: Round) -> StopReason | None:
    """The reason to stop after a round that the monitor has judged; `None` to go on to the critic."""
    if round_.satisfied:
        return "satisfied"
    rounds_left = round_.index < context.settings.max_metacognitive_rounds
    if round_.vote is not None and (round_.diagnosis is not None or _has_more_to_try(state, context, round_)):
        return None if rounds_left else "max_rounds"
    return _repeats(state, context, round_) or (_stands_still(state, context, round_) if rounds_left else "max_rounds")


def calls_of(state: State, context: Context, index: int) -> list[LedgerRow]:
    """The model calls of a round: those in the state, and those that the present node has made."""
    return [row for row in dict.fromkeys((*state.get("calls", ()), *context.model.rows)) if row.round == index]


def out_of_time(state: State, context: Context, index: int) -> StopReason | None:
    """Would another round of the same duration pass the deadline?"""
    if context.deadline is None:
        return None
    seconds = sum(row.latency_s for row in calls_of(state, context, index) if not row.cached)
    return DeadlineError.stop_reason if time.monotonic() + seconds > context.deadline else None


def _has_more_to_try(state: State, context: Context, round_: Round) -> bool:
    """Whether an open fact can be settled, or a diagnosis insists on its repair, even if the draft repeats itself."""
    findings = findings_of(state, context, round_)
    if findings.unsettled is not None:
        return True
    return context.settings.diagnosis == "facts" and any(one.insists for one in context.deficits.detected(findings))


def _repeats(state: State, context: Context, round_: Round) -> StopReason | None:
    threshold = context.settings.convergence_threshold
    drafts = [*(earlier.draft for earlier in state.get("rounds", ())), round_.draft]
    if converged(drafts, threshold):
        return "converged"
    return "oscillating" if oscillates(drafts, threshold) else None


def _stands_still(state: State, context: Context, round_: Round) -> StopReason | None:
    earlier = state.get("rounds", ())
    if context.settings.selection == "best" and earlier and _upheld(round_, earlier[-1]):
        return "upheld"
    return None if _pays(round_, earlier) else "no_gain"


def _upheld(round_: Round, before: Round) -> bool:
    """Did a repair that saw two answers keep the draft's, while the second answer did not change?

    Another attempt would see the same two answers; a weak model eventually gives in without any new evidence.
    """
    one, other = round_.second_answer, before.second_answer
    if one is None or other is None or one.error is not None or other.error is not None:
        return False
    short = round_.draft.short_answer
    if round_.draft.abstained or same_answer(short, one.short_answer):
        return False  # the fault is not which of the two answers is right: a quote may be missing
    return same_answer(short, before.draft.short_answer) and same_answer(one.short_answer, other.short_answer)


def _pays(round_: Round, earlier: Sequence[Round]) -> bool:
    """Is another repair worth its cost? Yes while each repair raised p_correct, if known."""
    known = [one.p_correct for one in (*earlier, round_) if one.p_correct is not None]
    return len(known) < 2 or known[-1] > max(known[:-1])


def same_draft(one: Draft, other: Draft, threshold: float) -> bool:
    """Do two drafts agree: similar full answers, and short answers equal once normalised?"""
    alike = jaccard(one.answer, other.answer) >= threshold
    return alike and normalised(one.short_answer) == normalised(other.short_answer)


def converged(drafts: Sequence[Draft], threshold: float) -> bool:
    """Did the last draft repeat the one before it?"""
    return len(drafts) > 1 and same_draft(drafts[-1], drafts[-2], threshold)


def oscillates(drafts: Sequence[Draft], threshold: float) -> bool:
    """Did the last draft return to an earlier one?"""
    return any(same_draft(drafts[-1], earlier, threshold) for earlier in drafts[:-2])

"""Node `diagnose`: the monitor, then, only if it is not satisfied, the evaluator-critic."""

import time
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from langgraph.runtime import Runtime

from ..errors import BudgetError, DeadlineError
from ..grounding.short_answer import same_answer
from ..llm.ledger import total
from .context import Context
from .critic import evaluate
from .facts.diagnosis import diagnose_from_facts, findings_of
from .facts.voting import run_vote
from .monitoring.convergence import converged, oscillates
from .monitoring.monitor import VOTE, policy, second_answer
from .monitoring.signals import measure
from .prompting.packing import Packed, pack
from .routes import RouteAnswer
from .state import NO_DEFICIT, Round, SecondAnswer, State, StopReason, Update


async def diagnose(state: State, runtime: Runtime[Context]) -> Update:
    """Judge the draft, record the round, and set the stop reason if the loop ends."""
    context = runtime.context
    if state.get("stop_reason"):
        return {}
    started = time.perf_counter()
    index = len(state.get("rounds", ()))
    round_ = Round(
        index=index,
        draft=state["draft"],
        packing=state["packing"],
        evidence_ids=tuple(found.passage.id for found in state.get("evidence", ())),
        plan=state.get("plan"),
    )
    stop_reason: StopReason | None
    if (settled := _settled(state, context)) is not None:
        return {"rounds": (replace(round_, cost_usd=Decimal(0)),), "stop_reason": settled}
    drawn: tuple[RouteAnswer, ...] = ()
    try:
        if context.settings.monitor_policy == VOTE:
            round_, drawn = await run_vote(state, context, round_, _packed(state, context))
        else:
            round_ = await _monitored(state, context, round_)
        runtime.stream_writer(round_)  # observers see the monitor's verdict before the critic's
        stop_reason = _stop_reason(state, context, round_)
        if stop_reason is None:
            round_ = await _diagnosed(state, context, round_)
            stop_reason = "critic_satisfied" if _found_nothing(round_) else _out_of_time(context, index)
    except BudgetError as error:
        stop_reason = error.stop_reason
    spent = total(row for row in context.model.rows if row.round == index)
    seconds = round(time.perf_counter() - started, 4)
    update: dict[str, object] = {
        "rounds": (replace(round_, calls=spent.calls, cost_usd=spent.cost_usd, seconds=seconds),)
    }
    if round_.derivation is not None:
        update |= {"derivation": round_.derivation, "routes": drawn}
    return update | ({"stop_reason": stop_reason} if stop_reason else {})


async def _monitored(state: State, context: Context, round_: Round) -> Round:
    packed = _packed(state, context)
    second = _earlier_second_answer(state, packed)
    if second is None:
        second = await second_answer(context, state["question"], packed, round_=round_.index)
    signals = await measure(context, state["question"], round_.draft, second, packed)
    known = context.oracles.monitor
    judged = policy(context.settings)(signals, context.settings)
    # in grounded runs, an answer that quotes none of the documents is not shown, however plausible
    unquoted = context.grounded and not signals.verbatim
    satisfied = (judged.satisfied and not unquoted) if known is None else known(round_.draft)
    return replace(round_, second_answer=second, signals=signals, satisfied=satisfied, p_correct=judged.p_correct)


def _settled(state: State, context: Context) -> StopReason | None:
    """The reason to stop if memory is off and NOT FOUND is the answer, found without asking a model."""
    plan = state.get("plan")
    if not context.grounded:
        return None
    if plan is not None and plan.answer_mode == "memory":
        return "not_in_evidence"
    return None if state.get("evidence") else "no_evidence"


def _packed(state: State, context: Context) -> Packed:
    # everything found, even if the draft was written from memory
    return pack(state.get("evidence", ()), context.model.owner.evidence_tokens(), marked=context.grounded)


def _earlier_second_answer(state: State, packed: Packed) -> SecondAnswer | None:
    """The second answer depends only on question and evidence: without new evidence it is reused."""
    for earlier in reversed(state.get("rounds", ())):
        second = earlier.second_answer
        if second is not None and second.error is None and second.packed_ids == packed.packing.packed_ids:
            return second
    return None


def _stop_reason(state: State, context: Context, round_: Round) -> StopReason | None:
    if round_.satisfied:
        return "satisfied"
    rounds_left = round_.index < context.settings.max_metacognitive_rounds
    if round_.vote is not None and _has_more_to_try(state, context, round_):
        return None if rounds_left else "max_rounds"
    return _repeats(state, context, round_) or (_stands_still(state, context, round_) if rounds_left else "max_rounds")


def _has_more_to_try(state: State, context: Context, round_: Round) -> bool:
    """Can an open fact be settled, or an elected answer be taken over, even if the draft repeats itself?"""
    if findings_of(state, context, round_).unsettled is not None:
        return True
    if context.settings.diagnosis != "facts" or not any(one.repair == "conclude" for one in context.deficits):
        return False
    plans = (one.plan for one in (*state.get("rounds", ()), round_))
    return not any(plan is not None and plan.repair == "conclude" for plan in plans)


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


def _out_of_time(context: Context, index: int) -> StopReason | None:
    """Would another round of the same duration pass the deadline?"""
    if context.deadline is None:
        return None
    seconds = sum(row.latency_s for row in context.model.rows if row.round == index and not row.cached)
    return DeadlineError.stop_reason if time.monotonic() + seconds > context.deadline else None


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


async def _diagnosed(state: State, context: Context, round_: Round) -> Round:
    if context.settings.diagnosis == "facts" and round_.vote is not None:
        found = diagnose_from_facts(findings_of(state, context, round_), context)
        known = context.oracles.diagnosis
        return replace(round_, diagnosis=found if known is None else replace(found, deficit=await known(round_)))
    return await _evaluated(state, context, round_)


async def _evaluated(state: State, context: Context, round_: Round) -> Round:
    diagnosis = await evaluate(context, state["question"], round_, _packed(state, context))
    known = context.oracles.diagnosis
    if known is not None:
        diagnosis = replace(diagnosis, deficit=await known(round_))
    return replace(round_, diagnosis=diagnosis)


def _found_nothing(round_: Round) -> bool:
    return round_.diagnosis is not None and round_.diagnosis.deficit == NO_DEFICIT

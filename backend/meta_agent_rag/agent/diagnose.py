"""Node `diagnose`: the monitor, then, only if it is not satisfied, the evaluator-critic."""

import time
from dataclasses import replace
from decimal import Decimal

from langgraph.runtime import Runtime

from ..errors import BudgetError
from ..llm.ledger import total
from .context import Context
from .critic import evaluate
from .facts.diagnosis import diagnose_from_facts, findings_of
from .facts.voting import run_vote
from .monitoring.monitor import VOTE, policy, second_answer
from .monitoring.signals import measure
from .prompting.packing import Packed, pack
from .routes import RouteAnswer
from .state import NO_DEFICIT, Diagnosis, Round, SecondAnswer, State, StopReason, Update
from .stopping import out_of_time, reason_to_stop, settled_without_a_model


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
    if (settled := settled_without_a_model(state, context)) is not None:
        return {"rounds": (replace(round_, cost_usd=Decimal(0)),), "stop_reason": settled}
    drawn: tuple[RouteAnswer, ...] = ()
    try:
        if context.settings.monitor_policy == VOTE:
            round_, drawn = await run_vote(state, context, round_, _packed(state, context))
        else:
            round_ = await _monitored(state, context, round_)
        runtime.stream_writer(round_)  # observers see the monitor's verdict before the critic's
        stop_reason = reason_to_stop(state, context, round_)
        if stop_reason is None:
            diagnosis = await _diagnosed(state, context, round_)
            round_ = replace(round_, diagnosis=diagnosis)
            stop_reason = "critic_satisfied" if diagnosis.deficit == NO_DEFICIT else out_of_time(context, index)
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


async def _diagnosed(state: State, context: Context, round_: Round) -> Diagnosis:
    if context.settings.diagnosis == "facts" and round_.vote is not None:
        diagnosis = diagnose_from_facts(findings_of(state, context, round_), context)
    else:
        diagnosis = await evaluate(context, state["question"], round_, _packed(state, context))
    known = context.oracles.diagnosis
    if known is not None:
        diagnosis = replace(diagnosis, deficit=await known(round_))
    return diagnosis

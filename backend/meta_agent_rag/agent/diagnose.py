"""Node `diagnose`: the monitor, then, only if it is not satisfied, the diagnosis by facts or by the critic."""

import json
import time
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Annotated, Literal, cast

from langgraph.runtime import Runtime
from pydantic import Field, create_model

from ..errors import AuthenticationError, BalanceError, BudgetError, ModelError
from ..llm.ledger import total
from ..prompts import phrase
from .context import Context
from .deficits import DeficitRegistry
from .derivation.reading import reading_of
from .monitor import VOTE, policy, second_answer
from .prompting import Line, Lines, Packed, ReplyModel, task
from .routes import RouteAnswer
from .signals import measure
from .state import NO_DEFICIT, Diagnosis, Round, State, StopReason, Update, add_found, shown
from .stopping import calls_of, reason_to_stop, select, settled_without_a_model
from .voting import findings_of, run_vote


async def diagnose(state: State, runtime: Runtime[Context]) -> Update:
    """Judge the draft, record the round, and set the stop reason and the answer if the loop ends."""
    update = {} if state.get("stop_reason") else await _examined(state, runtime)
    stop_reason = cast(StopReason | None, update.get("stop_reason", state.get("stop_reason")))
    if stop_reason is None:
        return update
    # if the critic found that the evidence lacks it, the answer is NOT FOUND, not a rejected draft
    how = "last" if stop_reason == "not_in_evidence" else runtime.context.settings.selection
    chosen = select((*state.get("rounds", ()), *cast(tuple[Round, ...], update.get("rounds", ()))), how)
    return {
        **update,
        "answer": chosen.draft.answer,
        "short_answer": chosen.draft.short_answer,
        "chosen": chosen.index,
    }


async def _examined(state: State, runtime: Runtime[Context]) -> Update:
    context = runtime.context
    started = time.perf_counter()
    index = len(state.get("rounds", ()))
    round_ = Round(
        index=index,
        draft=state["draft"],
        packing=state["packing"],
        evidence_ids=tuple(found.passage.id for found in shown(state)),
        plan=state.get("plan"),
    )
    stop_reason: StopReason | None
    if (settled := settled_without_a_model(state, context)) is not None:
        return {"rounds": (replace(round_, cost_usd=Decimal(0)),), "stop_reason": settled}
    drawn: tuple[RouteAnswer, ...] = ()
    cut = state.get("cut")
    searched: dict[str, object] = {}
    try:
        if context.settings.monitor_policy == VOTE:
            voted = await run_vote(state, context, round_)
            round_, drawn, cut, added = voted.round, voted.drawn, voted.cut or cut, voted.reading.added
            searched = {"evidence": added, "dropped": voted.reading.dropped}
            state = {**state, "evidence": add_found(state.get("evidence", ()), added)}
            if round_.satisfied and context.settings.diagnosis == "facts" and context.oracles.monitor is None:
                # a deficit that speaks before a draft is accepted may object
                findings = findings_of(state, context, round_)
                if (objection := next(context.deficits.detected(findings, before=True), None)) is not None:
                    round_ = replace(round_, satisfied=False, diagnosis=objection)
        else:
            round_ = await _monitored(state, context, round_)
        runtime.stream_writer(round_)  # observers see the monitor's verdict before the critic's
        stop_reason = reason_to_stop(state, context, round_)
        if stop_reason is not None:
            stop_reason = cut or stop_reason
        else:
            diagnosis = round_.diagnosis or await _diagnosed(state, context, round_)
            round_ = replace(round_, diagnosis=diagnosis)
            stop_reason = "critic_satisfied" if diagnosis.deficit == NO_DEFICIT else None
    except BudgetError as error:
        stop_reason = error.stop_reason
    spent = total(calls_of(state, context, index))
    seconds = round(time.perf_counter() - started, 4)
    update: dict[str, object] = {
        "rounds": (replace(round_, calls=spent.calls, cost_usd=spent.cost_usd, seconds=seconds),),
        **searched,
        "cut": cut,
    }
    if round_.derivation is not None:
        update |= {"derivation": round_.derivation, "routes": drawn}
    return update | ({"stop_reason": stop_reason} if stop_reason else {})


async def _monitored(state: State, context: Context, round_: Round) -> Round:
    packed = reading_of(state, context).packed
    # it depends only on question and evidence: without new evidence it is reused
    known_second = (
        one
        for earlier in reversed(state.get("rounds", ()))
        if (one := earlier.second_answer) is not None
        and one.error is None
        and one.packed_ids == packed.packing.packed_ids
    )
    second = next(known_second, None)
    if second is None:
        second = await second_answer(context, state["question"], packed, round_=round_.index)
    signals = await measure(context, state["question"], round_.draft, second, packed)
    known = context.oracles.monitor
    # in grounded runs, an answer that quotes none of the documents is not shown, however plausible
    unquoted = context.grounded and not signals.verbatim
    satisfied = not unquoted and policy(context.settings)(signals, context.settings)
    satisfied = satisfied if known is None else known(round_.draft)
    return replace(round_, second_answer=second, signals=signals, satisfied=satisfied)


async def _diagnosed(state: State, context: Context, round_: Round) -> Diagnosis:
    if context.settings.diagnosis == "facts" and round_.vote is not None:
        diagnosis = context.deficits.by_facts(findings_of(state, context, round_))
    else:
        diagnosis = await evaluate(context, state["question"], round_, reading_of(state, context).packed)
    known = context.oracles.diagnosis
    if known is not None:
        diagnosis = replace(diagnosis, deficit=await known(round_))
    return diagnosis


async def evaluate(context: Context, question: str, judged: Round, packed: Packed) -> Diagnosis:
    """Ask the critic; if its call fails, heuristic rules decide, and the diagnosis says so.

    Raises only errors that must stop the run: a refused key, an empty account, a budget.
    """
    deficits, draft, second = context.deficits, judged.draft, judged.second_answer
    strays = f" {phrase('another_kind')}" if judged.signals is not None and judged.signals.of_kind is False else ""
    reference = phrase("nothing_quoted")
    if second is not None and second.error is None:
        reference = " ".join((*second.steps, f"(short answer: {second.short_answer})"))
    prompt = task(
        context,
        "evaluate",
        question,
        packed,
        draft=f"{draft.answer} (short answer: {draft.short_answer}){strays}",
        reference=reference,
        quotes="; ".join(draft.quotes) or phrase("nothing_quoted"),
        deficits="\n".join(
            f"- {one.name}: {one.when}" + (f" (for instance: {'; '.join(one.examples)})" if one.examples else "")
            for one in deficits
        ),
        names=json.dumps([*deficits.names, NO_DEFICIT]),
    )
    try:
        reply = await context.model.ainvoke("evaluate", prompt, critique_schema(deficits), round_=judged.index)
    except (AuthenticationError, BalanceError):
        raise
    except ModelError as error:
        guess = deficits.guess(judged.signals)
        rule = f"a rule chose it: {guess.when}"
        return Diagnosis(deficit=guess.name, rationale=rule, source="heuristic", critic_error=str(error))
    return Diagnosis(
        deficit=reply.deficit,
        rationale=reply.rationale,
        error_type=reply.error_type,
        suggestion=reply.suggestion,
        suggested_queries=tuple(reply.suggested_queries),
        source="critic",
    )


class CritiqueReply(ReplyModel):
    """Stage `evaluate`; the registry's names replace `deficit`'s type in `critique_schema`."""

    rationale: Line
    deficit: str
    error_type: Literal["incomplete_reasoning", "answer_redundance", "ambiguous_understanding", "none"]
    suggestion: Annotated[str, Field(json_schema_extra={"maxLength": 240})]
    suggested_queries: Annotated[Lines, Field(json_schema_extra={"maxItems": 3})]


@cache
def critique_schema(deficits: DeficitRegistry) -> type[CritiqueReply]:
    """The critic's output schema: `deficit` is one of the registry's names, or none."""
    names = Literal[(*deficits.names, NO_DEFICIT)]  # type: ignore[valid-type]  # known at run time alone
    return create_model("CritiqueReply", __base__=CritiqueReply, deficit=(names, ...))

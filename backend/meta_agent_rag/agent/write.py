"""Node `write` (cognition): quote first, then answer."""

from langgraph.runtime import Runtime

from ..errors import BudgetError, ModelError
from ..grounding.abstention import is_abstention
from ..prompts import phrase
from .context import Context
from .messages import messages
from .packing import Packed, pack
from .replies import DraftReply, ShortAnswerReply
from .state import AnswerMode, Draft, Packing, Plan, State, Update


async def write(state: State, runtime: Runtime[Context]) -> Update:
    """Write a draft; the first from the flash tier, one after a remediation from the pro tier.

    Where a later write fails or may not be paid for, the loop stops with the drafts that it has.
    """
    context = runtime.context
    if state.get("stop_reason"):
        return {}
    plan = state.get("plan")
    mode = answer_mode(context, plan)
    packed = None if mode == "memory" else pack(state.get("evidence", ()), context.model.owner.evidence_tokens())
    packing = packed.packing if packed is not None else Packing()
    if context.grounded and (packed is None or not packed.texts):
        return {"draft": not_found(), "packing": packing}
    try:
        return {"draft": await _draft(state, context, plan, mode, packed), "packing": packing}
    except BudgetError as error:
        return {"stop_reason": _stopped(state, error, error.stop_reason)}
    except ModelError as error:
        return {"stop_reason": _stopped(state, error, "write_failed")}


def answer_mode(context: Context, plan: Plan | None) -> AnswerMode:
    """What a draft may draw on; in grounded runs memory never adds to the evidence."""
    if plan is None or (context.grounded and plan.answer_mode == "evidence_and_memory"):
        return "evidence" if context.grounded else "evidence_and_memory"
    return plan.answer_mode


def not_found() -> Draft:
    """The honest answer where there is nothing to answer from."""
    return Draft(answer=phrase("not_found"), short_answer=phrase("not_found"), abstained=True)


def _stopped(state: State, error: BudgetError | ModelError, reason: str) -> str:
    if not state.get("rounds") or (isinstance(error, ModelError) and error.stops_run):
        raise error
    return reason


async def _draft(state: State, context: Context, plan: Plan | None, mode: AnswerMode, packed: Packed | None) -> Draft:
    question, round_ = state["question"], len(state.get("rounds", ()))
    values = {
        "mode": phrase(f"mode_{mode}"),
        "abstention": phrase("abstain" if context.grounded else "best_guess"),
    }
    if plan is None:
        stage = "write"
    else:
        suggestion = plan.suggestion or phrase("no_suggestion")
        before = f"{state['draft'].answer} (short answer: {state['draft'].short_answer})"
        values |= {"draft": before, "directive": plan.directive, "suggestion": suggestion}
        stage = "rewrite"
    prompt = messages(context.settings, stage, question, packed, **values)
    reply = await context.model.ainvoke(stage, prompt, DraftReply, round_=round_)
    short = reply.short_answer
    if context.settings.short_answer == "stage":
        prompt = messages(context.settings, "short_answer", question, packed, draft=reply.answer)
        short = (await context.model.ainvoke("short_answer", prompt, ShortAnswerReply, round_=round_)).short_answer
    return Draft(answer=reply.answer, short_answer=short, quotes=tuple(reply.quotes), abstained=is_abstention(short))

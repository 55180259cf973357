"""Node `write` (cognition): quote first, then answer; or, after a diagnosis by facts, carry out its repair."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace

from langgraph.runtime import Runtime

from ..errors import BudgetError, ModelError
from ..grounding.abstention import is_abstention, states_unknown
from ..grounding.marks import marks, without
from ..grounding.quotes import is_verbatim
from ..grounding.short_answer import without_disambiguation
from ..prompts import phrase
from ..retrieval.passage import Found
from ..text.normalise import normalised
from ..text.sentences import sentences
from .context import Context
from .derivation import Derivation, Fact
from .derivation.derive import look_up_facts, make_plan
from .derivation.look_up import kind_wanted, look_up, value_of
from .derivation.resolution import resolve
from .monitor import VOTE
from .prompting import (
    AnswererReply,
    DraftReply,
    GroundedReply,
    Packed,
    asked_for,
    in_conversation,
    in_manner,
    pack,
    task,
)
from .routes import DERIVATION, Vote
from .signals import mean_logprob, right_kind, short_answer_logprob, with_logprobs
from .state import AnswerMode, Draft, Packing, RepairPlan, Round, State, StopReason, Update, shown
from .voting import cited_passages


async def write(state: State, runtime: Runtime[Context]) -> Update:
    """Write a draft; the first with the flash tier, later ones with the pro tier.

    If a later write fails or exceeds a budget, the loop stops and keeps the drafts so far.
    """
    context = runtime.context
    if state.get("stop_reason"):
        return {}
    plan = state.get("plan")
    mode = answer_mode(context, plan)
    packed = (
        None if mode == "memory" else pack(shown(state), context.model.owner.evidence_tokens(), marked=context.grounded)
    )
    packing = packed.packing if packed is not None else Packing()
    if context.grounded and (packed is None or not packed.texts):
        return {"draft": not_found(), "packing": packing}
    try:
        if plan is not None and plan.repair != "rewrite":
            return await _repaired(state, context, plan)
        drafting = _draft(state, context, plan, mode, packed)
        derives = plan is None and context.settings.monitor_policy == VOTE
        written = await _planned_beside(state, context, drafting) if derives else {"draft": await drafting}
        return {**written, "packing": packing}
    except BudgetError as error:
        return {"stop_reason": _stopped(state, error, error.stop_reason)}
    except ModelError as error:
        return {"stop_reason": _stopped(state, error, "write_failed")}


async def _planned_beside(state: State, context: Context, drafting: Coroutine[None, None, Draft]) -> Update:
    """The first draft, with the derivation's plan made concurrently, since it needs only the question.

    A failed plan is left to `diagnose`, which can end the loop without losing the draft.
    """
    planning = asyncio.create_task(make_plan(context, state["question"], round_=0))
    try:
        draft = await drafting
    except BaseException:
        planning.cancel()
        await asyncio.gather(planning, return_exceptions=True)  # its call is paid for before the run ends
        raise
    try:
        return {"draft": draft, "planned": await planning}
    except (BudgetError, ModelError):
        return {"draft": draft}


async def _repaired(state: State, context: Context, plan: RepairPlan) -> Update:
    """A draft that follows from the facts or the vote, or one reread from the cited passages."""
    packed = pack(shown(state), context.model.owner.evidence_tokens(), marked=context.grounded)
    last = state["rounds"][-1]
    vote, derivation = last.vote, last.derivation
    if plan.repair == "reread":
        cited = cited_passages(state, packed, state["draft"], derivation)
        packed = cited if cited.texts else packed
        return {"draft": await _draft(state, context, plan, "evidence", packed), "packing": packed.packing}
    update: dict[str, object] = {}
    draft, packing = draft_of_text(plan, plan.adopt or "", packed), packed.packing
    if plan.repair == "look_up" and derivation is not None and any(one.asked == plan.ask for one in derivation.facts):
        derivation = await retry_fact(state, context, plan, packed)
        update = {"derivation": derivation}
        if derivation.answer:
            draft = draft_of(derivation, packed.packing.packed_ids)
        elif vote is not None:
            draft, packing = draft_from_vote(state, vote, packed)
    elif plan.repair == "look_up":
        draft = draft_of_text(plan, await _own_fact(state, context, plan, packed), packed)
    elif vote is not None and plan.adopt == vote.elected:
        draft, packing = draft_from_vote(state, vote, packed)
    elif derivation is not None and plan.adopt == derivation.answer:
        draft = draft_of(derivation, packed.packing.packed_ids)
    if plan.because:
        draft = replace(draft, answer=f"{draft.answer} {plan.because}".strip())
    return {"draft": draft, "packing": packing, **update}


def answer_mode(context: Context, plan: RepairPlan | None) -> AnswerMode:
    """The sources that a draft may use; in grounded runs memory never adds to the evidence."""
    if plan is None or (context.grounded and plan.answer_mode == "evidence_and_memory"):
        return "evidence" if context.grounded else "evidence_and_memory"
    return plan.answer_mode


def not_found() -> Draft:
    """The answer if there is nothing to answer from."""
    return Draft(answer=phrase("not_found"), short_answer=phrase("not_found"), abstained=True)


def _stopped(state: State, error: BudgetError | ModelError, reason: StopReason) -> StopReason:
    if not state.get("rounds") or (isinstance(error, ModelError) and error.stops_run):
        raise error
    return reason


async def _draft(
    state: State, context: Context, plan: RepairPlan | None, mode: AnswerMode, packed: Packed | None
) -> Draft:
    question, round_ = state["question"], len(state.get("rounds", ()))
    values = {
        "mode": phrase(f"mode_{mode}"),
        "abstention": phrase("abstain" if context.grounded else "best_guess"),
    }
    stage = "write" if plan is None else "rewrite"
    schema: type[DraftReply] = DraftReply
    if context.grounded:
        schema = AnswererReply if plan is None else GroundedReply
    if plan is not None:
        values |= _to_repair(state, context, plan, mode)
    prompt = task(context, "answerer" if plan is None and context.grounded else stage, question, packed, **values)
    reply, said = await context.model.aparse(
        stage,
        in_manner(in_conversation(context, prompt), context.manner),
        schema,
        round_=round_,
        sampling=with_logprobs(context, stage),
    )
    short = without_disambiguation(
        reply.short_answer or _only(reply.answer), packed.titles if packed is not None else ()
    )
    return Draft(
        answer=reply.answer or short or phrase("not_found"),
        short_answer=short or phrase("not_found"),
        quotes=tuple(reply.quotes),
        abstained=is_abstention(short) and not (context.grounded and _quotes_unknown(reply.quotes, packed)),
        confidence=reply.confidence,
        logprob=short_answer_logprob(said, reply.short_answer),
    )


def _quotes_unknown(quotes: Sequence[str], packed: Packed | None) -> bool:
    """Do the documents say themselves that it is not known, so that "not known" is an answer?"""
    texts = packed.texts if packed is not None else ()
    return states_unknown(quote for quote in quotes if is_verbatim(quote, texts))


def _only(answer: str) -> str:
    """The answer itself without its marks, if its writer gave no short one; empty if it says that there is none."""
    bare = without(answer, [(mark.start, mark.end) for mark in marks(answer)])
    return "" if is_abstention(bare) else bare


def _to_repair(state: State, context: Context, plan: RepairPlan, mode: AnswerMode) -> dict[str, str]:
    """The instructions for a later draft; one from memory keeps the facts found in the passages.

    It sees only the short answers of both attempts: it would copy their sentences instead of the passages'.
    """
    facts = verified_quotes(state.get("rounds", ()), shown(state)) if mode == "memory" else ()
    return {
        "draft": state["draft"].short_answer,
        "reference": _other_attempt(state, context),
        "directive": f"{plan.directive} {asked_for(context, state['question'])}".rstrip(),
        "advice": _advice(plan),
        "facts": f"{phrase('known_facts')} {' '.join(facts)}" if facts else "",
    }


def _advice(plan: RepairPlan) -> str:
    """The critic's advice, unless passages have been added since or are left aside."""
    if plan.queries or plan.answer_mode == "memory":
        return ""
    return f"{phrase('advice')} {plan.suggestion or phrase('no_suggestion')}"


def _other_attempt(state: State, context: Context) -> str:
    second = state["rounds"][-1].second_answer
    if second is None or second.error is not None:
        return phrase("nothing_quoted")
    astray = right_kind(context, state["question"], second.short_answer) is False
    return phrase("nothing_quoted") if astray else second.short_answer


def verified_quotes(rounds: Sequence[Round], evidence: Sequence[Found]) -> tuple[str, ...]:
    """All verbatim quotes of the drafts from the evidence, without duplicates, in order."""
    texts = [found.passage.searchable() for found in evidence]
    quotes = dict.fromkeys(quote for one in rounds for quote in one.draft.quotes)
    return tuple(quote for quote in quotes if is_verbatim(quote, texts))


_RECALLED = "from memory"


async def retry_fact(state: State, context: Context, plan: RepairPlan, packed: Packed) -> Derivation:
    """The derivation with the plan's fact asked again, from the evidence or from memory.

    All other facts are kept, except those that depend on this one.
    """
    before = state["derivation"]
    assert before.plan is not None
    round_ = len(state.get("rounds", ()))
    if before.resolved and plan.answer_mode != "memory":
        return await resolve(context, state["question"], packed, round_=round_)
    known = [fact for fact in before.facts if fact.asked != plan.ask]
    if plan.answer_mode == "memory":
        known += [await _recalled(context, fact, round_) for fact in before.facts if fact.asked == plan.ask]
    return await look_up_facts(
        context, state["question"], before.plan, packed, context.operators, round_=round_, known=known
    )


async def _own_fact(state: State, context: Context, plan: RepairPlan, packed: Packed) -> str:
    """The value of a fact that the derivation does not have; empty if neither passages nor memory give it."""
    asked, round_ = plan.ask or "", len(state.get("rounds", ()))
    if plan.answer_mode == "memory":
        return (await _recalled(context, Fact(chain=0, index=0, asked=asked, entity="", value=""), round_)).value
    fact = await look_up(context, asked, "", packed, chain=0, index=0, of="", round_=round_)
    return "" if fact.open else fact.value


def draft_of_text(plan: RepairPlan, short_answer: str, packed: Packed) -> Draft:
    """A deficit's own answer as a draft, with a sentence that contains it."""
    quote = _sentence_with(short_answer, packed)
    return Draft(
        answer=f"{quote[1].rstrip('.')} [{quote[0]}]." if quote else short_answer or phrase("not_found"),
        short_answer=short_answer or phrase("not_found"),
        quotes=(quote[1],) if quote else (),
        abstained=not short_answer,
        route=plan.deficit,
    )


async def _recalled(context: Context, fact: Fact, round_: int) -> Fact:
    """The fact as the model remembers it; it stays open if the call fails or gives no answer."""
    prompt = task(
        replace(context, asked=""), "recall", fact.asked, None, kind=phrase(f"wanted_{kind_wanted(fact.asked)}")
    )
    try:
        reply = await context.model.areply("recall", prompt, round_=round_, sampling=with_logprobs(context, "recall"))
    except ModelError as error:
        if error.stops_run:
            raise
        return fact
    value = value_of(reply, fact.asked, ())
    if is_abstention(value):
        return fact
    return replace(
        fact,
        value=value,
        passage_id=None,
        sentence="",
        logprob=mean_logprob(reply),
        open=None,
        from_memory=True,
    )


def draft_of(derivation: Derivation, packed_ids: Sequence[str]) -> Draft:
    """The derived answer as a draft: the sentences that contain its facts, each cited, and the conclusion.

    `packed_ids` are the passages of the prompt in order.
    """
    numbers = {identity: number for number, identity in enumerate(packed_ids, start=1)}
    said: dict[str, None] = {}
    for fact in derivation.facts:
        if fact.from_memory:
            said[f"{fact.asked} {fact.value} ({_RECALLED})."] = None
        elif fact.sentence and fact.passage_id in numbers:
            said[f"{fact.sentence.rstrip('.')} [{numbers[fact.passage_id]}]."] = None
    return Draft(
        answer=" ".join(said) or derivation.because or derivation.answer,
        short_answer=derivation.answer,
        quotes=tuple(dict.fromkeys(fact.sentence for fact in derivation.facts if fact.sentence)),
        route=DERIVATION,
    )


def draft_from_vote(state: State, vote: Vote, packed: Packed) -> tuple[Draft, Packing]:
    """The elected answer as a draft: from the derivation, an earlier draft, or another route.

    The returned packing is the one that its citations refer to; an earlier draft keeps its own.
    """
    if vote.route == DERIVATION and state["derivation"].answer:
        return draft_of(state["derivation"], packed.packing.packed_ids), packed.packing
    for round_ in state.get("rounds", ()):
        if round_.draft.route == vote.route and round_.draft.short_answer == vote.elected:
            return round_.draft, round_.packing
    return _taken_over(state, vote, packed), packed.packing


def _taken_over(state: State, vote: Vote, packed: Packed) -> Draft:
    """Another route's answer, with a sentence that contains it, or else the steps that led to it."""
    steps = next((answer.steps for answer in state.get("routes", ()) if answer.route == vote.route), ())
    quote = _sentence_with(vote.elected, packed)
    cited = [f"{quote[1].rstrip('.')} [{quote[0]}]."] if quote else []
    return Draft(
        answer=" ".join(cited or steps) or vote.elected,
        short_answer=vote.elected,
        quotes=(quote[1],) if quote else (),
        route=vote.route,
    )


def _sentence_with(short_answer: str, packed: Packed) -> tuple[int, str] | None:
    """The number of the first passage that contains an answer, and the sentence."""
    wanted = f" {normalised(short_answer)} "
    for number, text in enumerate(packed.texts, start=1):
        for sentence in sentences(text.partition("\n")[2]):
            if wanted.strip() and wanted in f" {normalised(sentence)} ":
                return number, sentence.strip()
    return None

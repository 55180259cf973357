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
from ..text.normalise import normalised
from ..text.sentences import sentences
from .context import Context
from .derivation import Derivation, Fact
from .derivation.derive import look_up_facts, make_plan
from .derivation.look_up import kind_wanted, look_up, value_of
from .derivation.reading import Reading, reading_of
from .monitor import VOTE
from .prompting import (
    AnswererReply,
    DraftReply,
    GroundedReply,
    Packed,
    as_asked,
    asked_for,
    pack,
    task,
)
from .routes import DERIVATION, Vote
from .signals import mean_logprob, right_kind, short_answer_logprob, with_logprobs
from .state import VERDICTS, AnswerMode, Draft, Packing, RepairPlan, State, Update, shown


async def write(state: State, runtime: Runtime[Context]) -> Update:
    """Write a draft; the first with the flash tier, later ones with the pro tier.

    If a later write fails or exceeds a budget, the loop stops and keeps the drafts so far.
    """
    context = runtime.context
    if state.get("stop_reason"):
        return {}
    plan = state.get("plan")
    mode: AnswerMode = "evidence_and_memory" if plan is None else plan.answer_mode
    if context.grounded and mode == "evidence_and_memory":
        mode = "evidence"  # memory never adds to it
    packed = None if mode == "memory" else reading_of(state, context).packed
    packing = packed.packing if packed is not None else Packing()
    if context.grounded and (packed is None or not packed.texts):
        said = phrase("not_found")
        return {"draft": Draft(answer=said, short_answer=said, abstained=True), "packing": packing}
    try:
        if plan is not None and plan.repair != "rewrite":
            return await _repaired(state, context, plan)
        drafting = _draft(state, context, plan, mode, packed)
        derives = plan is None and context.settings.monitor_policy == VOTE
        written = await _planned_beside(state, context, drafting) if derives else {"draft": await drafting}
        return {**written, "packing": packing}
    except (BudgetError, ModelError) as error:
        if not state.get("rounds") or (isinstance(error, ModelError) and error.stops_run):
            raise
        return {"stop_reason": error.stop_reason if isinstance(error, BudgetError) else "write_failed"}


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
    reading = reading_of(state, context)
    packed = reading.packed
    last = state["rounds"][-1]
    vote, derivation = last.vote, last.derivation
    if plan.repair == "reread":
        cited = _cited_passages(state, packed, derivation)
        packed = cited if cited.texts else packed
        return {"draft": await _draft(state, context, plan, "evidence", packed), "packing": packed.packing}
    update: dict[str, object] = {}
    draft, packing = _quoting(plan.adopt or "", packed, route=plan.deficit), packed.packing
    if plan.repair == "look_up" and derivation is not None and any(one.asked == plan.ask for one in derivation.facts):
        derivation, reading = await _retry_fact(state, context, plan, reading)
        update = {"derivation": derivation, "evidence": reading.added, "dropped": reading.dropped}
        packed, packing = reading.packed, reading.packed.packing
        if derivation.answer:
            draft = draft_of(derivation, packed.packing.packed_ids)
        elif vote is not None:
            draft, packing = _draft_from_vote(state, vote, packed)
    elif plan.repair == "look_up":  # a fact that the derivation does not have
        asked, round_ = plan.ask or "", len(state["rounds"])
        if plan.answer_mode == "memory":
            fact = await _recalled(context, Fact(chain=0, index=0, asked=asked, entity="", value=""), round_)
        else:
            fact = await look_up(context, asked, "", packed, chain=0, index=0, of="", round_=round_)
        draft = _quoting("" if fact.open else fact.value, packed, route=plan.deficit)
    elif vote is not None and plan.adopt == vote.elected:
        draft, packing = _draft_from_vote(state, vote, packed)
    elif derivation is not None and plan.adopt == derivation.answer:
        draft = draft_of(derivation, packed.packing.packed_ids)
    if plan.because:
        draft = replace(draft, answer=f"{draft.answer} {plan.because}".strip())
    return {"draft": draft, "packing": packing, **update}


def _cited_passages(state: State, packed: Packed, derivation: Derivation | None) -> Packed:
    """The evidence reduced to passages that contain a fact of the derivation or a name that the draft mentions."""
    draft = state["draft"]
    held = {fact.passage_id for fact in derivation.facts} if derivation is not None else set()
    said = f" {normalised(' '.join((draft.answer, *draft.quotes)))} "
    kept = [
        found
        for found in shown(state)
        if found.passage.id in packed.packing.packed_ids
        and (found.passage.id in held or f" {normalised(found.passage.title)} " in said)
    ]
    return pack(kept, packed.packing.tokens or 1, marked=packed.marked)


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
        as_asked(context, prompt),
        schema,
        round_=round_,
        sampling=with_logprobs(context, stage),
    )
    short = reply.short_answer
    if not short:  # the answer itself without its marks, unless it says that there is none
        bare = without(reply.answer, [(mark.start, mark.end) for mark in marks(reply.answer)])
        short = "" if is_abstention(bare) else bare
    short = without_disambiguation(short, packed.titles if packed is not None else ())
    abstained = is_abstention(short)
    if abstained and context.grounded and packed is not None:  # unless the documents say themselves that it is unknown
        abstained = not states_unknown(quote for quote in reply.quotes if is_verbatim(quote, packed.texts))
    if abstained and context.grounded:
        short = phrase("not_found")
    return Draft(
        answer=reply.answer or short or phrase("not_found"),
        short_answer=short or phrase("not_found"),
        quotes=tuple(reply.quotes),
        abstained=abstained,
        confidence=reply.confidence,
        logprob=short_answer_logprob(said, reply.short_answer),
    )


def _to_repair(state: State, context: Context, plan: RepairPlan, mode: AnswerMode) -> dict[str, str]:
    """The instructions for a later draft; one from memory keeps the facts found in the passages.

    It sees only the short answers of both attempts: it would copy their sentences instead of the passages'. The
    critic's advice is left out if passages have been added since or are left aside.
    """
    rounds = state["rounds"]
    other, second = phrase("nothing_quoted"), rounds[-1].second_answer
    answered = second is not None and second.error is None
    if second is not None and answered and right_kind(context, state["question"], second.short_answer) is not False:
        other = second.short_answer
    advice = f"{phrase('advice')} {plan.suggestion or phrase('no_suggestion')}"
    facts: list[str] = []
    if mode == "memory":
        texts = [found.passage.searchable() for found in shown(state)]
        quotes = dict.fromkeys(quote for one in rounds for quote in one.draft.quotes)
        facts = [quote for quote in quotes if is_verbatim(quote, texts)]
    return {
        "draft": state["draft"].short_answer,
        "reference": other,
        "directive": f"{plan.directive} {asked_for(context, state['question'])}".rstrip(),
        "advice": "" if plan.queries or plan.answer_mode == "memory" else advice,
        "facts": f"{phrase('known_facts')} {' '.join(facts)}" if facts else "",
    }


async def _retry_fact(state: State, context: Context, plan: RepairPlan, reading: Reading) -> tuple[Derivation, Reading]:
    """The derivation with the plan's fact asked again, from the evidence or from memory.

    All other facts are kept, except those that depend on this one.
    """
    before = state["derivation"]
    assert before.plan is not None
    round_ = len(state.get("rounds", ()))
    known = [fact for fact in before.facts if fact.asked != plan.ask]
    if plan.answer_mode == "memory":
        known += [await _recalled(context, fact, round_) for fact in before.facts if fact.asked == plan.ask]
    return await look_up_facts(
        context, state["question"], before.plan, reading, context.operators, round_=round_, known=known
    )


def _quoting(short_answer: str, packed: Packed, *, route: str, steps: Sequence[str] = ()) -> Draft:
    """The answer of a route or deficit as a draft: the first sentence that contains it, or the steps that led to it."""
    abstains = not short_answer or is_abstention(short_answer)
    wanted = f" {normalised(short_answer)} "
    for number, text in enumerate(packed.texts, start=1):
        for sentence in sentences(text.partition("\n")[2]):
            if wanted.strip() not in ("", *VERDICTS) and wanted in f" {normalised(sentence)} ":
                if abstains and not states_unknown([sentence]):
                    continue
                quote = sentence.strip()
                answer = f"{quote.rstrip('.')} [{number}]."
                return Draft(answer=answer, short_answer=short_answer, quotes=(quote,), route=route)
    said = phrase("not_found") if abstains else short_answer
    return Draft(answer=" ".join(steps) or said, short_answer=said, abstained=abstains, route=route)


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
            said[f"{fact.asked} {fact.value} (from memory)."] = None
        elif fact.sentence and fact.passage_id in numbers:
            said[f"{fact.sentence.rstrip('.')} [{numbers[fact.passage_id]}]."] = None
    return Draft(
        answer=" ".join(said) or derivation.because or derivation.answer,
        short_answer=derivation.answer,
        quotes=tuple(dict.fromkeys(fact.sentence for fact in derivation.facts if fact.sentence)),
        route=DERIVATION,
    )


def _draft_from_vote(state: State, vote: Vote, packed: Packed) -> tuple[Draft, Packing]:
    """The elected answer as a draft: from the derivation, an earlier draft, or another route.

    The returned packing is the one that its citations refer to; an earlier draft keeps its own.
    """
    if vote.route == DERIVATION and state["derivation"].answer:
        return draft_of(state["derivation"], packed.packing.packed_ids), packed.packing
    for round_ in state.get("rounds", ()):
        if round_.draft.route == vote.route and round_.draft.short_answer == vote.elected:
            return round_.draft, round_.packing
    drawn = (one for one in state.get("routes", ()) if (one.route, one.short_answer) == (vote.route, vote.elected))
    steps = next((one.steps for one in drawn), ())
    return _quoting(vote.elected, packed, route=vote.route, steps=steps), packed.packing

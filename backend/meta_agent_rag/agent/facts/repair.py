"""Repairs of a diagnosis by facts: ask for the open fact again, or use the conclusion of the facts or the vote."""

from collections.abc import Sequence
from dataclasses import replace

from ...errors import ModelError
from ...grounding.abstention import is_abstention
from ...prompts import phrase
from ...text.normalise import normalised
from ...text.sentences import sentences
from ..context import Context
from ..derivation import Derivation, Fact
from ..derivation.derive import look_up_facts
from ..derivation.look_up import kind_wanted, value_of
from ..monitoring.signals import mean_logprob, with_logprobs
from ..prompting.messages import task
from ..prompting.packing import Packed
from ..routes import DERIVATION, Vote
from ..state import Draft, Packing, RepairPlan, State

_RECALLED = "from memory"


async def retry_fact(state: State, context: Context, plan: RepairPlan, packed: Packed) -> Derivation:
    """The derivation with the plan's fact asked again, from the evidence or from memory.

    All other facts are kept, except those that depend on this one.
    """
    before = state["derivation"]
    assert before.plan is not None
    round_ = len(state.get("rounds", ()))
    known = [fact for fact in before.facts if fact.asked != plan.about]
    if plan.answer_mode == "memory":
        known += [await _recalled(context, fact, round_) for fact in before.facts if fact.asked == plan.about]
    return await look_up_facts(
        context, state["question"], before.plan, packed, context.operators, round_=round_, known=known
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

"""The monitor and the diagnosis by facts: a derivation beside the draft, a vote over routes, and rules in code."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...text.normalise import normalised
from ..context import Context
from ..derivation import Derivation
from ..derivation.derive import derive
from ..monitoring.signals import measure_alone, right_kind
from ..prompting.packing import Packed, pack
from ..routes import DERIVATION, Ballot, RouteAnswer, Vote
from ..routes.route import Leg
from ..routes.vote import count, decided, upholds
from ..state import VERDICTS, Draft, Round, State
from .diagnosis import findings_of

_STANDS = 1.6
_OPEN = 0.6
"""What the derivation counts in the vote where all its facts stand, and where some are open (docs/decisions/015)."""


async def examined(
    state: State, context: Context, round_: Round, packed: Packed
) -> tuple[Round, tuple[RouteAnswer, ...]]:
    """The round with its derivation and vote, and the answers of the routes that were drawn for it.

    Routes are drawn one after another, and only while the vote is undecided.
    """
    derivation = state.get("derivation")
    if derivation is None:
        derivation = await derive(context, state["question"], packed, context.operators, round_=round_.index)
    signals = measure_alone(context, state["question"], round_.draft, packed)
    round_ = replace(round_, derivation=derivation, signals=signals)
    drafts = [*(one.draft for one in state.get("rounds", ())), round_.draft]
    counted = _ballots(context, state["question"], drafts, derivation, packed)
    earlier = state.get("routes", ())
    drawn: list[RouteAnswer] = []
    vote = counted(earlier)
    for name in context.settings.routes[len(earlier) :]:
        if _decided(context, vote):
            break
        taken = sum(answer.route == name for answer in (*earlier, *drawn))
        leg = _leg(state, packed, round_.draft, derivation, draw=taken)
        drawn.append(await context.routes[name].walk(context, leg))
        vote = counted([*earlier, *drawn])
    round_ = replace(round_, vote=vote)
    known = context.oracles.monitor
    satisfied = _satisfied(state, context, round_) if known is None else known(round_.draft)
    return replace(round_, satisfied=satisfied), tuple(drawn)


def _satisfied(state: State, context: Context, round_: Round) -> bool:
    """Does the vote uphold the draft, and, if it does so narrowly, is nothing left to be done about an open fact?

    Over documents an answer that quotes none of them is not shown, however plausible.
    """
    assert round_.vote is not None
    if round_.draft.abstained or not upholds(round_.vote, round_.draft.short_answer):
        return False
    if context.grounded and not (round_.signals is not None and round_.signals.verbatim):
        return False
    return _decided(context, round_.vote) or findings_of(state, context, round_).unsettled is None


def _decided(context: Context, vote: Vote) -> bool:
    return decided(vote, context.settings.vote_share)


def _ballots(
    context: Context, question: str, drafts: Sequence[Draft], derivation: Derivation, packed: Packed
) -> Callable[[Sequence[RouteAnswer]], Vote]:
    """Counts the vote of drafts, derivation and the answers of other routes."""
    held = f" {normalised(' '.join(packed.texts))} "

    def ballot(route: str, short_answer: str, *, weight: float = 1.0, outranks: bool = False) -> Ballot:
        short = normalised(short_answer)
        return Ballot(
            route=route,
            short_answer=short_answer,
            weight=weight,
            outranks=outranks,
            of_kind=right_kind(context, question, short_answer) if short else None,
            in_evidence=None if short in VERDICTS else f" {short} " in held,
        )

    # a draft that took over another route's answer has no vote of its own
    own = [one for one in drafts if one.route not in {DERIVATION, *context.routes} and not one.abstained]
    fixed = [ballot(one.route, one.short_answer) for one in own]
    if derivation.answer:
        weight = _STANDS if derivation.stands else _OPEN
        fixed.append(ballot(DERIVATION, derivation.answer, weight=weight, outranks=derivation.compared))

    def counted(answers: Sequence[RouteAnswer]) -> Vote:
        return count([*fixed, *(ballot(one.route, one.short_answer, weight=_weight(context, one)) for one in answers)])

    return counted


def _weight(context: Context, answer: RouteAnswer) -> float:
    return context.routes[answer.route].weight if answer.route in context.routes else 1.0


def _leg(state: State, packed: Packed, draft: Draft, derivation: Derivation, *, draw: int) -> Leg:
    cited = cited_passages(state, packed, draft, derivation)
    return Leg(question=state["question"], packed=packed, cited=cited, round=len(state.get("rounds", ())), draw=draw)


def cited_passages(state: State, packed: Packed, draft: Draft, derivation: Derivation | None) -> Packed:
    """The evidence cut down to the passages that hold a fact of the derivation, or a name of which the draft speaks."""
    held = {fact.passage_id for fact in derivation.facts} if derivation is not None else set()
    said = f" {normalised(' '.join((draft.answer, *draft.quotes)))} "
    kept = [
        found
        for found in state.get("evidence", ())
        if found.passage.id in packed.packing.packed_ids
        and (found.passage.id in held or f" {normalised(found.passage.title)} " in said)
    ]
    return pack(kept, packed.packing.tokens or 1)

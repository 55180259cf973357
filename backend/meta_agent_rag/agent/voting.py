"""The monitor by facts: a derivation beside the draft, and a vote over routes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..discovery import calling, require_result
from ..errors import BudgetError
from ..grounding.abstention import is_abstention
from ..llm.local import own_model_file
from ..llm.providers import choose_provider
from ..llm.stages import serving, stage
from ..settings import Settings
from ..text.normalise import normalised
from .calibration import calibration_of_votes, probability
from .context import Context
from .deficits import Findings
from .derivation import Derivation
from .derivation.derive import derive, make_plan
from .derivation.reading import Reading, read_on, reading_of
from .prompting import Packed
from .routes import DERIVATION, DRAFT, Ballot, RouteAnswer, Vote
from .routes.route import RouteInput
from .routes.vote import cast, count, decided, same, support_for, upholds
from .signals import measure_alone, right_kind
from .state import VERDICTS, Draft, RepairPlan, Round, Signals, State, StopReason, shown

VOTE_SHARE = 0.7
"""The share of the vote that elects an answer without asking another route."""

STANDS = 1.6
OPEN = 0.6
"""The derivation's weight in the vote if all its facts are reliable, and if some are open (docs/decisions/015)."""


async def _derived(state: State, context: Context, reading: Reading, *, round_: int) -> tuple[Derivation, Reading]:
    """The question's derivation, made in the first round, and the evidence with what was searched for its facts."""
    if (derivation := state.get("derivation")) is not None:
        return derivation, reading
    made = state.get("planned") or await make_plan(context, state["question"], round_=round_)
    return await derive(context, state["question"], made, reading, round_=round_)


@dataclass(frozen=True, kw_only=True)
class Voted:
    """A round with its derivation and vote, the answers of the routes drawn for it, and the evidence at its end.

    `cut` is the limit that a route would have exceeded: the ballots so far decide.
    """

    round: Round
    drawn: tuple[RouteAnswer, ...]
    reading: Reading
    cut: StopReason | None


async def run_vote(state: State, context: Context, round_: Round) -> Voted:
    """Derive an answer in the first round, and take the vote.

    Routes are drawn one after another, and only while the vote is undecided. Without a derivation nothing has searched
    for what lies between question and answer, so in the first round all but the first also read what is found with the
    draft's answer, unless it is the title of a passage that they read already.
    """
    reading = reading_of(state, context)
    signals = measure_alone(context, state["question"], round_.draft, reading.packed)
    derivation, reading = await _derived(state, context, reading, round_=round_.index)
    round_ = replace(round_, derivation=derivation, signals=signals)
    counted = _ballots(context, state, round_, derivation, reading.packed)
    earlier = _still_valid(state, round_)
    drawn: list[RouteAnswer] = []
    cut: StopReason | None = None
    vote = counted(earlier)
    searches = derivation.plan is None and round_.index == 0
    for name in _left(voters(context.settings), earlier):
        if decided(vote, VOTE_SHARE):
            break
        if searches and len(drawn) == 1:
            draft = "" if round_.draft.abstained else round_.draft.short_answer
            reading = await read_on(context, reading, draft, [f"{draft} {state['question']}".strip()])
            counted = _ballots(context, state, round_, derivation, reading.packed)
        taken = sum(answer.route == name for answer in (*earlier, *drawn))
        given = RouteInput(question=state["question"], packed=reading.packed, round=round_.index, draw=taken)
        try:
            with calling("route", name, context.routes[name].run):
                answer = await context.routes[name].run(context, given)
                require_result(answer, RouteAnswer)
                if answer.route != name:
                    raise ValueError(f"it returned an answer of the route {answer.route!r}")
        except BudgetError as error:
            cut = error.stop_reason
            break
        drawn.append(answer)
        vote = counted([*earlier, *drawn])
    signals = _with_vote(signals, round_.draft, derivation, vote, reading.packed)
    p_correct = round(probability(signals, calibration_of_votes(context.settings)), 4)
    round_ = replace(round_, vote=vote, signals=signals, p_correct=p_correct)
    known = context.oracles.monitor
    satisfied = _satisfied(state, context, round_) if known is None else known(round_.draft)
    searched = tuple(found.passage.id for found in reading.added)
    round_ = replace(round_, satisfied=satisfied, searches=reading.searches, searched_ids=searched)
    return Voted(round=round_, drawn=tuple(drawn), reading=reading, cut=cut)


def _with_vote(signals: Signals, draft: Draft, derivation: Derivation, vote: Vote, packed: Packed) -> Signals:
    """The signals, extended by what the vote and the derivation say about the draft."""
    held = _spaced(packed)
    derived = same(draft.short_answer, derivation.answer) if derivation.answer else None
    return replace(
        signals,
        share=round(support_for(vote, draft.short_answer), 4),
        voters=len(cast(vote)),
        derived=derived,
        compared=derived is True and derivation.compared,
        in_evidence=None if draft.abstained else _in_evidence(draft.short_answer, held),
        open_facts=len(derivation.open_facts) if derivation.plan is not None else None,
        taken_over=draft.route != DRAFT,
    )


def _satisfied(state: State, context: Context, round_: Round) -> bool:
    """Whether the vote upholds the draft and, if only narrowly, nothing more can be done about an open fact.

    In grounded runs, an answer that quotes none of the documents is not shown, however plausible.
    """
    assert round_.vote is not None
    if round_.draft.abstained or not upholds(round_.vote, round_.draft.short_answer):
        return False
    if context.grounded and not (round_.signals is not None and round_.signals.verbatim):
        return False
    return decided(round_.vote, VOTE_SHARE) or findings_of(state, context, round_).unsettled is None


def _plans(state: State, round_: Round) -> list[RepairPlan]:
    return [one.plan for one in (*state.get("rounds", ()), round_) if one.plan is not None]


def _still_valid(state: State, round_: Round) -> list[RouteAnswer]:
    """The routes' answers so far, without those that a repair made obsolete."""
    plans = _plans(state, round_)
    return [
        answer
        for place, answer in enumerate(state.get("routes", ()))
        if not any(answer.route in plan.obsolete and place < plan.drawn for plan in plans)
    ]


def _left(names: Sequence[str], answers: Sequence[RouteAnswer]) -> list[str]:
    """The routes that are still to be asked, in order; a route may be named, and asked, several times."""
    left = list(names)
    for answer in answers:
        if answer.route in left:
            left.remove(answer.route)
    return left


def _written(state: State, round_: Round) -> list[Draft]:
    """The drafts so far, without those that a later repair made obsolete."""
    rounds = (*state.get("rounds", ()), round_)
    return [
        one.draft
        for one in rounds
        if not any(
            later.plan is not None and one.draft.route in later.plan.obsolete for later in rounds[one.index + 1 :]
        )
    ]


def _concludes(state: State, round_: Round, derivation: Derivation) -> bool:
    """Whether the derivation casts a ballot: it has an answer that no repair has made obsolete since it was made."""
    valid = bool(derivation.answer)
    for plan in _plans(state, round_):
        if plan.repair == "look_up" and plan.deficit != round_.draft.route:
            valid = bool(derivation.answer)
        elif DERIVATION in plan.obsolete:
            valid = False
    return valid


def _ballots(
    context: Context, state: State, round_: Round, derivation: Derivation, packed: Packed
) -> Callable[[Sequence[RouteAnswer]], Vote]:
    """Counts the votes of drafts, derivation and the other routes."""
    question = state["question"]
    held = _spaced(packed)
    hops = derivation.earlier_hops

    def ballot(route: str, short_answer: str, *, weight: float = 1.0, outranks: bool = False) -> Ballot:
        short = normalised(short_answer)
        return Ballot(
            route=route,
            short_answer=short_answer,
            weight=weight,
            outranks=outranks,
            of_kind=False if short in hops else right_kind(context, question, short_answer) if short else None,
            in_evidence=_in_evidence(short_answer, held),
        )

    # a draft that took over another route's answer has no vote of its own
    taken_over = {DERIVATION, *context.routes}
    written = [one for one in _written(state, round_) if one.route not in taken_over and not one.abstained]
    # nor has one that repeats an earlier draft that its writer saw
    own: dict[str, Draft] = {}
    for one in written:
        if one.route in context.deficits.names or normalised(one.short_answer) not in own:
            own[normalised(one.short_answer)] = one
    # what a deficit concluded in code outranks the others, as a comparison does
    fixed = [ballot(one.route, one.short_answer, outranks=one.route in context.deficits.names) for one in own.values()]
    if _concludes(state, round_, derivation):
        weight = STANDS if derivation.stands else OPEN
        fixed.append(ballot(DERIVATION, derivation.answer, weight=weight, outranks=derivation.compared))

    def counted(answers: Sequence[RouteAnswer]) -> Vote:
        weights = {name: route.weight for name, route in context.routes.items()}
        drawn: list[Ballot] = []
        for one in answers:
            # over documents, NOT FOUND is an answer
            said = one.short_answer if context.grounded or not is_abstention(one.short_answer) else ""
            drawn.append(ballot(one.route, said, weight=weights.get(one.route, 1.0)))
        return count([*fixed, *drawn])

    return counted


def _spaced(packed: Packed) -> str:
    return f" {normalised(' '.join(packed.texts))} "


def _in_evidence(short_answer: str, held: str) -> bool | None:
    short = normalised(short_answer)
    return None if short in VERDICTS else f" {short} " in held


_ROUTES = ("plain_pass", "chain_of_thought", "step_by_step", "chain_of_thought", "chain_of_thought")
_ROUTES_OF_THE_PACKAGED = ("plain_pass",)


def small_model_defaults(settings: Settings) -> Settings:
    """The settings with ROUTES and PLANS filled in, unless set, as the models of these stages can follow them."""
    routes = _ROUTES_OF_THE_PACKAGED if _packaged("route", settings) else _ROUTES
    plans = "grammar" if _packaged("plan", settings) else "model"
    usual = {"routes": routes, "plans": plans}
    unset = {name: value for name, value in usual.items() if getattr(settings, name) is None}
    return settings.model_copy(update=unset) if unset else settings


def voters(settings: Settings) -> Sequence[str]:
    """The names of the routes that vote, in the order in which they are drawn."""
    if "vote" in settings.loop_without:
        return ()
    return _ROUTES if settings.routes is None else settings.routes


def _packaged(name: str, settings: Settings) -> bool:
    endpoint = serving(stage(name, settings), settings, choose_provider(settings))
    return endpoint.is_embedded and own_model_file(settings) is None


def findings_of(state: State, context: Context, round_: Round) -> Findings:
    """Everything known about the draft of an examined round."""
    assert round_.signals is not None
    rounds = [*state.get("rounds", ())[: round_.index], round_]
    plans = [one.plan for one in rounds if one.plan is not None]
    return Findings(
        question=state["question"],
        draft=round_.draft,
        signals=round_.signals,
        derivation=round_.derivation or Derivation(plan=None),
        vote=round_.vote,
        passages=shown(state),
        drafts=tuple(one.draft for one in rounds),
        diagnosis=round_.diagnosis,
        searched=_repaired(plans, from_memory=False),
        remembered=_repaired(plans, from_memory=True),
        tried=frozenset((plan.deficit, plan.about) for plan in plans),
        may_search=context.may_search,
        may_remember=not context.grounded,
    )


def _repaired(plans: Sequence[RepairPlan], *, from_memory: bool) -> frozenset[str]:
    """The facts that earlier rounds already searched for or recalled from memory."""
    return frozenset(
        plan.about
        for plan in plans
        if plan.about is not None and (plan.ask or plan.queries) and (plan.answer_mode == "memory") == from_memory
    )

"""The rules that end the loop: satisfied, out of rounds or time, converged, oscillating, or nothing to gain.

Drafts converge by the Jaccard similarity of consecutive full answers. Token sets alone cannot distinguish "A came
before B" from "B came before A", so the short answers must be equal as well. `select` then chooses the draft to return.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from ..errors import DeadlineError
from ..grounding.abstention import is_abstention
from ..grounding.short_answer import same_answer
from ..llm.ledger import LedgerRow
from ..text.normalise import jaccard, normalised
from .context import Context
from .routes.vote import upholds
from .state import NO_DEFICIT, Draft, Round, State, StopReason
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
    settings, earlier = context.settings, state.get("rounds", ())
    rounds_left = round_.index < settings.max_metacognitive_rounds
    if round_.vote is not None:
        # an open fact can be settled, or a diagnosis insists on its repair, even if the draft repeats itself
        findings = findings_of(state, context, round_)
        insists = settings.diagnosis == "facts" and any(one.insists for one in context.deficits.detected(findings))
        if round_.diagnosis is not None or findings.unsettled is not None or insists:
            return None if rounds_left else "max_rounds"
    repeats = [_same_draft(round_.draft, one.draft, settings.convergence_threshold) for one in earlier]
    if any(repeats):
        return "converged" if repeats[-1] else "oscillating"
    if not rounds_left:
        return "max_rounds"
    if settings.selection == "best" and earlier and _upheld(round_, earlier[-1]):
        return "upheld"
    # another repair is worth its cost while each raised p_correct, if known
    known = [one.p_correct for one in (*earlier, round_) if one.p_correct is not None]
    return None if len(known) < 2 or known[-1] > max(known[:-1]) else "no_gain"


def calls_of(state: State, context: Context, index: int) -> list[LedgerRow]:
    """The model calls of a round: those in the state, and those that the present node has made."""
    rows = Counter(state.get("calls", ())) | Counter(context.model.rows)
    return [row for row in rows.elements() if row.round == index]


def out_of_time(state: State, context: Context, index: int) -> StopReason | None:
    """Whether another round of the same duration would pass the deadline, as a reason to stop."""
    if context.deadline is None:
        return None
    seconds, until = 0.0, -math.inf
    for row in sorted(calls_of(state, context, index), key=lambda row: row.at):
        if not row.cached:  # calls at the same time take their time once
            began = row.at.timestamp()
            seconds += max(0.0, began + row.latency_s - max(began, until))
            until = max(until, began + row.latency_s)
    return DeadlineError.stop_reason if time.monotonic() + seconds > context.deadline else None


def _upheld(round_: Round, before: Round) -> bool:
    """Whether a repair that saw two answers kept the draft's, while the second answer did not change.

    Another attempt would see the same two answers; a weak model eventually gives in without any new evidence.
    """
    one, other = round_.second_answer, before.second_answer
    if one is None or other is None or one.error is not None or other.error is not None:
        return False
    short = round_.draft.short_answer
    if round_.draft.abstained or same_answer(short, one.short_answer):
        return False  # the fault is not which of the two answers is right: a quote may be missing
    return same_answer(short, before.draft.short_answer) and same_answer(one.short_answer, other.short_answer)


def _same_draft(one: Draft, other: Draft, threshold: float) -> bool:
    """Whether two drafts agree: similar full answers, and short answers equal once normalised."""
    alike = jaccard(one.answer, other.answer) >= threshold
    return alike and normalised(one.short_answer) == normalised(other.short_answer)


def select(rounds: Sequence[Round], how: Literal["best", "last"]) -> Round:
    """The round whose draft is returned: the first that matches the latest vote's answer, else the best supported.

    Of equals, the earlier wins, but the latest to which a deficit added a sentence. `last` reproduces the paper.
    """
    if how == "last":
        return rounds[-1]
    vote = next((round_.vote for round_ in reversed(rounds) if round_.vote is not None), None)
    if vote is not None:
        found = [one for one in rounds if not one.draft.abstained and upholds(vote, one.draft.short_answer)]
        if vote.elected and not found and is_abstention(vote.elected):
            found = [one for one in rounds if one.draft.abstained]
        explained = [one for one in found if one.plan is not None and one.plan.because]
        if found:
            return explained[-1] if explained else found[0]
    return max(rounds, key=lambda round_: (*_support(round_, rounds), -round_.index))


def _support(round_: Round, rounds: Sequence[Round]) -> tuple[float, ...]:
    """The support of a draft, as figures compared from left to right.

    An answer before an abstention; one of the kind that the question asks for; one that monitor or critic
    accepted; its p_correct, if known; the number of drafts, and of second answers over different evidence, that agree
    with it; the share of its quotes that are verbatim; its cosine.
    """
    signals, draft = round_.signals, round_.draft
    accepted = round_.satisfied or (round_.diagnosis is not None and round_.diagnosis.deficit == NO_DEFICIT)
    second = (other.second_answer for other in rounds)
    answers = {one.packed_ids: one.short_answer for one in second if one}
    reached = [*(other.draft.short_answer for other in rounds), *answers.values()]
    return (
        0.0 if draft.abstained else 1.0,
        0.0 if signals is not None and signals.of_kind is False else 1.0,
        float(accepted),
        round_.p_correct or 0.0,
        float(sum(same_answer(short, draft.short_answer) for short in reached)),
        (signals.verbatim or 0.0) if signals is not None else 0.0,
        (signals.similarity or 0.0) if signals is not None else 0.0,
    )

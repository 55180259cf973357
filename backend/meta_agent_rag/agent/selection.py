"""Chooses the draft to return: the best supported one of all rounds, not simply the last."""

from collections.abc import Sequence
from typing import Literal

from ..grounding.short_answer import same_answer
from .routes.vote import upholds
from .state import NO_DEFICIT, Round


def select(rounds: Sequence[Round], how: Literal["best", "last"]) -> Round:
    """The chosen round; `last` reproduces the paper. The earlier of equals wins."""
    if how == "last":
        return rounds[-1]
    if (voted := _elected(rounds)) is not None:
        return voted
    return max(rounds, key=lambda round_: (*support(round_, rounds), -round_.index))


def _elected(rounds: Sequence[Round]) -> Round | None:
    """The first round whose draft matches the latest vote's answer; `None` if there was no vote or no match."""
    vote = next((round_.vote for round_ in reversed(rounds) if round_.vote is not None), None)
    if vote is None:
        return None
    agreeing = [round_ for round_ in rounds if not round_.draft.abstained and upholds(vote, round_.draft.short_answer)]
    return agreeing[0] if agreeing else None


def support(round_: Round, rounds: Sequence[Round]) -> tuple[float, ...]:
    """The support of a draft, as figures compared from left to right.

    An answer before an abstention; one of the kind that the question asks for; one that monitor or critic
    accepted; its p_correct, if the monitor is calibrated; the number of drafts and second answers that agree with it;
    the share of its quotes that are verbatim; its cosine.
    """
    signals = round_.signals
    accepted = round_.satisfied or (round_.diagnosis is not None and round_.diagnosis.deficit == NO_DEFICIT)
    return (
        0.0 if round_.draft.abstained else 1.0,
        0.0 if signals is not None and signals.of_kind is False else 1.0,
        float(accepted),
        round_.p_correct or 0.0,
        float(_routes(round_, rounds)),
        (signals.verbatim or 0.0) if signals is not None else 0.0,
        (signals.similarity or 0.0) if signals is not None else 0.0,
    )


def _routes(round_: Round, rounds: Sequence[Round]) -> int:
    """The number of drafts, and second answers over different evidence, that gave this round's short answer."""
    second = (other.second_answer for other in rounds)
    answers = {one.packed_ids: one.short_answer for one in second if one}
    reached = [*(other.draft.short_answer for other in rounds), *answers.values()]
    return sum(same_answer(short, round_.draft.short_answer) for short in reached)

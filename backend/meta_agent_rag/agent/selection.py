"""Which draft is returned: the best supported one of all rounds, never simply the last."""

from collections.abc import Sequence
from typing import Literal

from ..grounding.short_answer import same_answer
from .routes.vote import upholds
from .state import NO_DEFICIT, Round


def select(rounds: Sequence[Round], how: Literal["best", "last"]) -> Round:
    """The chosen round; `last` reproduces the paper. Among equals the earlier one wins."""
    if how == "last":
        return rounds[-1]
    if (voted := _elected(rounds)) is not None:
        return voted
    return max(rounds, key=lambda round_: (*support(round_, rounds), -round_.index))


def _elected(rounds: Sequence[Round]) -> Round | None:
    """The first round whose draft says what the latest vote elected; `None` where there was no vote, or none does."""
    vote = next((round_.vote for round_ in reversed(rounds) if round_.vote is not None), None)
    if vote is None:
        return None
    agreeing = [round_ for round_ in rounds if not round_.draft.abstained and upholds(vote, round_.draft.short_answer)]
    return agreeing[0] if agreeing else None


def support(round_: Round, rounds: Sequence[Round]) -> tuple[float, ...]:
    """How well a draft is supported, as figures to be compared from left to right.

    An answer before an abstention; one of the kind that the question asks for; one that monitor or critic
    accepted; its chance of being right, where the monitor is calibrated; how many drafts and references arrived
    at it; the share of its quotes that are verbatim; its cosine.
    """
    signals = round_.signals
    accepted = round_.satisfied or (round_.diagnosis is not None and round_.diagnosis.deficit == NO_DEFICIT)
    return (
        0.0 if round_.draft.abstained else 1.0,
        0.0 if signals is not None and signals.of_kind is False else 1.0,
        float(accepted),
        round_.chance or 0.0,
        float(_routes(round_, rounds)),
        (signals.verbatim or 0.0) if signals is not None else 0.0,
        (signals.similarity or 0.0) if signals is not None else 0.0,
    )


def _routes(round_: Round, rounds: Sequence[Round]) -> int:
    """How many drafts, and references over different evidence, came to this round's short answer."""
    references = {other.reference.packed_ids: other.reference.short_answer for other in rounds if other.reference}
    reached = [*(other.draft.short_answer for other in rounds), *references.values()]
    return sum(same_answer(short, round_.draft.short_answer) for short in reached)

"""The vote over routes: elects the answer with the most support from all others, by word F1."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...grounding.short_answer import same_answer
from ...text.normalise import normalised, overlap
from ..derivation.values import same_value

DERIVATION = "derivation"
DRAFT = "quoted_draft"


@dataclass(frozen=True, kw_only=True)
class RouteAnswer:
    """A route's answer; `error` says why there is none, `logprob` is the mean over its answer's tokens (<= 0)."""

    route: str
    short_answer: str
    steps: tuple[str, ...] = ()
    logprob: float | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        short: object = self.short_answer
        if not isinstance(short, str):
            raise TypeError(f"the short_answer of a route must be a text, empty if it has none, not {short!r}")


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """One route's answer as a vote.

    `weight` (>= 0) is its weight; `outranks` means that its answer wins regardless of the others, as with values
    compared in code; `of_kind` and `in_evidence` are `None` if undetermined.
    """

    route: str
    short_answer: str
    weight: float = 1.0
    outranks: bool = False
    of_kind: bool | None = None
    in_evidence: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Vote:
    """The elected answer, the route that gave it, and the share (0..1) of the weight that supports it.

    `support` has each ballot's share, in the order of `ballots`. An empty answer means that nothing was elected.
    """

    elected: str
    route: str
    share: float
    ballots: tuple[Ballot, ...]
    support: tuple[float, ...]


_SAME = 0.99


@lru_cache(maxsize=4096)  # a vote is counted again with every ballot
def alike(one: str, other: str) -> float:
    """The similarity (0..1) of two short answers: 1 for equal dates, numbers or countries, else their word F1."""
    if not normalised(one) or not normalised(other):
        return 0.0
    if same_answer(one, other) or same_value(one, other) is True:
        return 1.0
    return overlap(one, other)


def count(ballots: Sequence[Ballot]) -> Vote:
    """Minimum Bayes risk over the answers of the right kind; on ties, one that occurs in the evidence, then the first.

    If no answer is of the right kind, all of them vote.
    """
    eligible = _eligible(ballots)
    total = sum(ballot.weight for ballot in eligible)
    if not eligible or total <= 0:
        return Vote(elected="", route="", share=0.0, ballots=tuple(ballots), support=(0.0,) * len(ballots))
    scores = {
        id(ballot): sum(other.weight * alike(ballot.short_answer, other.short_answer) for other in eligible) / total
        for ballot in eligible
    }
    best = max(
        eligible,
        key=lambda ballot: (
            ballot.outranks,
            round(scores[id(ballot)], 6),
            ballot.in_evidence is not False,
            -eligible.index(ballot),
        ),
    )
    return Vote(
        elected=best.short_answer,
        route=best.route,
        share=round(scores[id(best)], 4),
        ballots=tuple(ballots),
        support=tuple(round(scores.get(id(ballot), 0.0), 4) for ballot in ballots),
    )


def _eligible(ballots: Sequence[Ballot]) -> list[Ballot]:
    answered = [ballot for ballot in ballots if ballot.short_answer.strip()]
    return [ballot for ballot in answered if ballot.of_kind is not False] or answered


def same(one: str, other: str) -> bool:
    """Whether two short answers mean the same."""
    return alike(one, other) >= _SAME


def upholds(vote: Vote, short_answer: str) -> bool:
    """Whether the vote elected this answer, or an equivalent one."""
    return same(vote.elected, short_answer)


def cast(vote: Vote) -> tuple[Ballot, ...]:
    """The ballots that count: those with an answer, and only those of the right kind if there are any."""
    return tuple(_eligible(vote.ballots))


def support_for(vote: Vote, short_answer: str) -> float:
    """The share (0..1) of the weight that supports an answer, whether or not it was elected."""
    voting = _eligible(vote.ballots)
    total = sum(ballot.weight for ballot in voting)
    return sum(one.weight * alike(short_answer, one.short_answer) for one in voting) / total if total > 0 else 0.0


def decided(vote: Vote, share: float) -> bool:
    """Whether another route is pointless: if two voted and the elected answer has the share, or if it outranks all."""
    voting = [ballot for ballot in vote.ballots if ballot.short_answer.strip() and ballot.of_kind is not False]
    if any(ballot.outranks and ballot.short_answer == vote.elected for ballot in voting):
        return True
    return len(voting) > 1 and vote.share >= share

"""What a vote over routes holds."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

DERIVATION = "derivation"
DRAFT = "quoted_draft"


@dataclass(frozen=True, kw_only=True)
class RouteAnswer:
    """What a route answered; `error` says why it did not, `logprob` is the mean over its answer's tokens (<= 0)."""

    route: str
    short_answer: str
    steps: tuple[str, ...] = ()
    logprob: float | None = None
    error: str | None = None


class Voter(Protocol):
    """A route as a run's context holds it: `route.Route`, of which the context must not know more."""

    @property
    def weight(self) -> float: ...

    @property
    def walk(self) -> Callable[[Any, Any], Awaitable[RouteAnswer]]: ...


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """One route's answer as it votes.

    `weight` (>= 0) is what it counts; `outranks` that its answer is taken whatever the others say, as values compared
    in code are; `of_kind` and `in_evidence` are `None` where they cannot be told.
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

    `support` has each ballot's own share, in the order of `ballots`. An empty answer means that nothing was elected.
    """

    elected: str
    route: str
    share: float
    ballots: tuple[Ballot, ...]
    support: tuple[float, ...]

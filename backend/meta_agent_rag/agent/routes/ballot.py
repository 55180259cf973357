"""The values of a vote over routes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

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


class Voter(Protocol):
    """A route as seen by a run's context: `route.Route`, which the context must not import."""

    @property
    def weight(self) -> float: ...

    @property
    def run(self) -> Callable[[Any, Any], Awaitable[RouteAnswer]]: ...


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

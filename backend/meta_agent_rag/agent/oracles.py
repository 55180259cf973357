"""Judgements that a benchmark replaces by what it knows, to measure what a stage's mistakes cost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .derivation import Plan
from .state import Draft, Round


@dataclass(frozen=True, kw_only=True)
class Oracles:
    """What replaces each stage; `None` leaves a stage as it is.

    `monitor` says whether a draft is right. `diagnosis` names a round's deficit; the critic is still asked, its advice
    and queries are kept. `plan` is taken for the question's plan. `fact` gives the value of a fact from its question
    and its entity, or `None` if it does not know it, so that it is looked up.
    """

    monitor: Callable[[Draft], bool] | None = None
    diagnosis: Callable[[Round], Awaitable[str]] | None = None
    plan: Plan | None = None
    fact: Callable[[str, str], str | None] | None = None


NO_ORACLES = Oracles()

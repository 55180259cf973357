"""Judgements that a benchmark replaces with its own knowledge, to measure what a stage's mistakes cost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .derivation import Plan
from .state import Draft, Round


@dataclass(frozen=True, kw_only=True)
class Oracles:
    """The replacement for each stage; `None` leaves a stage unchanged.

    `monitor` says whether a draft is right. `diagnosis` names a round's deficit; the critic is still asked, and its
    advice and queries are kept. `plan` replaces the question's plan. `fact` maps a fact's question and its entity
    to the fact's value, or to `None` if unknown; the fact is then looked up.
    """

    monitor: Callable[[Draft], bool] | None = None
    diagnosis: Callable[[Round], Awaitable[str]] | None = None
    plan: Plan | None = None
    fact: Callable[[str, str], str | None] | None = None


NO_ORACLES = Oracles()

"""Judgements that a benchmark replaces by what it knows, to measure what a stage's mistakes cost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .state import Draft, Round


@dataclass(frozen=True, kw_only=True)
class Oracles:
    """`monitor` says whether a draft is right, `diagnosis` names a round's deficit; `None` leaves a stage as it is.

    The critic is still asked: its advice and queries are kept, only the deficit is replaced.
    """

    monitor: Callable[[Draft], bool] | None = None
    diagnosis: Callable[[Round], Awaitable[str]] | None = None


NO_ORACLES = Oracles()

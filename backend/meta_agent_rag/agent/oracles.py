"""Judgements that a benchmark replaces by what it knows, to measure what a stage's mistakes cost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .state import Diagnosis, Draft, Round


@dataclass(frozen=True, kw_only=True)
class Oracles:
    """`monitor` says whether a draft is right, `critic` what is wrong with a round; `None` leaves a stage as it is."""

    monitor: Callable[[Draft], bool] | None = None
    critic: Callable[[Round], Awaitable[Diagnosis]] | None = None


NO_ORACLES = Oracles()

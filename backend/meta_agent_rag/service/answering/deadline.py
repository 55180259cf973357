"""One hard deadline for a whole request, divided among its stages."""

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from ...agent.engine import Answer
from ...errors import DeadlineError
from ...llm.stages import endpoints_in_use
from ...settings import Settings
from ..failures import TIMED_OUT, timed_out

Result = TypeVar("Result")
DEFAULT_SECONDS = 5.0
EMBEDDED_SECONDS = 120.0
_RETRIEVAL_SHARE = 0.4
_FINISH_SHARE = 0.1
_DATABASE_SECONDS = 2.0
_GRACE_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Seconds: of the whole request, of a search in one index, and reserved for the checks and the record.

    Of 5.0 s, a search has 2.0 and the end 0.5; generation has the remaining 2.5, plus what retrieval left.
    """

    total: float
    retrieval: float
    finish: float

    @property
    def database(self) -> float:
        """Seconds for one database look-up: two of them, for a key and its daily cost, fit into a request."""
        return min(_DATABASE_SECONDS, self.retrieval)

    @classmethod
    def of(cls, settings: Settings) -> "Budgets":
        """The budgets in the settings, or defaults that fit the model."""
        embedded = any(endpoint.is_embedded for endpoint in endpoints_in_use(settings).values())
        total = settings.service_deadline_seconds or (EMBEDDED_SECONDS if embedded else DEFAULT_SECONDS)
        return cls(total=total, retrieval=total * _RETRIEVAL_SHARE, finish=total * _FINISH_SHARE)


async def within(work: Coroutine[Any, Any, Result], deadline: float, *, message: str = TIMED_OUT) -> Result:
    """Do the work until a `time.monotonic` timestamp; after that, it is cancelled together with its calls.

    Raises `RequestError` with 504 and the message. Work that ignores its cancellation is not awaited.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        if not task.done():
            raise timed_out(message)
        return task.result()
    finally:
        if not task.done():  # late or abandoned; a short wait, so that its calls are recorded
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE_SECONDS)
        task.add_done_callback(_retrieved)


def _retrieved(task: "asyncio.Task[Any]") -> None:
    """Retrieve the result of an abandoned task; otherwise asyncio complains."""
    if not task.cancelled():
        task.exception()


def require_verified(answer: Answer) -> None:
    """Raise `DeadlineError` if time ran out before the chosen draft was judged: it must not be shown unverified."""
    chosen = answer.rounds[answer.chosen]
    if answer.stop_reason == DeadlineError.stop_reason and chosen.signals is None:
        raise DeadlineError("The deadline passed before the draft was judged; ask a simpler question.")

"""The timing of calls: waiting for others, the deadline, and retries after a failure."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from ..errors import BusyError, DeadlineError, ModelError, TransientError

PASSED = "The deadline has passed; ask a simpler question or allow more time."


async def in_time(waiting: Awaitable[Any], deadline: float | None) -> None:
    """Await something. `deadline` is a `time.monotonic` timestamp; raises `DeadlineError` once it has passed."""
    try:
        async with asyncio.timeout(None if deadline is None else deadline - time.monotonic()):
            await waiting
    except TimeoutError:
        raise DeadlineError(PASSED) from None


@asynccontextmanager
async def holding(lock: asyncio.Lock | asyncio.Semaphore, deadline: float | None) -> AsyncIterator[None]:
    """Hold a lock or a semaphore, acquired as in `in_time`."""
    await in_time(lock.acquire(), deadline)
    try:
        yield
    finally:
        lock.release()


@dataclass
class KeyLock:
    """The lock of one key, and the number of its holders and waiters."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


@asynccontextmanager
async def alone(under_way: dict[str, KeyLock], key: str, deadline: float | None) -> AsyncIterator[None]:
    """Serialise work with the same key, so that the second finds what the first has paid for. Raises as `holding`."""
    turn = under_way.setdefault(key, KeyLock())
    turn.users += 1
    try:
        async with holding(turn.lock, deadline):
            yield
    finally:
        turn.users -= 1
        if not turn.users:
            del under_way[key]


_LATE = 2
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0


@dataclass(kw_only=True)
class Tries:
    """The attempts of one call: `most` after a busy server or a lost connection, two if it was late or unreadable."""

    most: int
    lost: int = 0
    late: int = 0

    def another(self, fault: ModelError) -> bool:
        """Count a failed attempt; true if another one is worthwhile."""
        if isinstance(fault, TransientError):
            self.late += 1
            return self.late <= min(_LATE, self.most)
        self.lost += 1
        return self.lost <= self.most

    def pause(self, fault: ModelError) -> float:
        """Seconds before the next attempt: those that the server requests, or doubled with each one made."""
        if isinstance(fault, TransientError):
            return 0.0
        if isinstance(fault, BusyError) and fault.retry_after is not None:
            return fault.retry_after
        return min(_FIRST_PAUSE_S * 2.0**self.lost, _LONGEST_PAUSE_S) * (1 - 0.25 * random.random())

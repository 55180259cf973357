"""The timing of calls: waiting for others, the deadline, and retries after a failure."""

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from ..errors import DeadlineError, LostConnectionError, ModelError, TransientError

PASSED = "The deadline has passed; ask a simpler question or allow more time."


async def in_time(waiting: Awaitable[Any], deadline: float | None) -> None:
    """Await something. `deadline` is a `time.monotonic` timestamp; raises `DeadlineError` once it has passed."""
    try:
        async with asyncio.timeout(None if deadline is None else deadline - time.monotonic()):
            await waiting
    except TimeoutError:
        raise DeadlineError(PASSED) from None


_ends: ContextVar[float] = ContextVar("ends", default=math.inf)


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """A limit on the time of one call, see `time_left`; raises `TimeoutError`."""
    token = _ends.set(time.monotonic() + seconds)
    try:
        async with asyncio.timeout(seconds):
            yield
    finally:
        _ends.reset(token)


def time_left() -> float:
    """Seconds left for the call in progress."""
    return _ends.get() - time.monotonic()


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
    """The attempts of one call: `most` after lost connections, two if it timed out or was unreadable.

    Each may have been billed, and is a separate call for the budget and the ledger.
    """

    most: int
    lost: int = 0
    late: int = 0

    def another(self, fault: ModelError) -> bool:
        """Is another attempt worthwhile?"""
        if isinstance(fault, LostConnectionError):
            self.lost += 1
            return self.lost <= self.most
        if isinstance(fault, TransientError):
            self.late += 1
            return self.late <= min(_LATE, self.most)
        return False

    def pause(self, fault: ModelError) -> float:
        """Seconds to wait before the next attempt."""
        return pause(self.lost - 1) if isinstance(fault, LostConnectionError) else 0.0


def pause(made: int) -> float:
    """Seconds before the next attempt, doubled with each one made."""
    return min(_FIRST_PAUSE_S * 2.0**made, _LONGEST_PAUSE_S) * (1 - 0.25 * random.random())


def requested_pause(headers: Mapping[str, str]) -> float | None:
    """The pause that a server requests with Retry-After, in seconds; `None` without a valid one."""
    seconds = _retry_after(headers)
    return seconds if seconds is not None and 0 < seconds < math.inf else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds, as milliseconds, seconds or a date."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return float(milliseconds) / 1000
        after = headers.get("retry-after")
        if after is None:
            return None
        if after.replace(".", "", 1).isdigit():
            return float(after)
        return parsedate_to_datetime(after).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None

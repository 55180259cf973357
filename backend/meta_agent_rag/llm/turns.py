"""Waiting for one's turn: behind an equal call, or for a place among the calls in flight, till the deadline."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from ..errors import DeadlineError

PASSED = "The deadline has passed; ask a simpler question or allow more time."


async def in_time(waiting: Awaitable[Any], deadline: float | None) -> None:
    """Wait for something. `deadline` is a `time.monotonic` moment; raises `DeadlineError` once it has passed."""
    try:
        async with asyncio.timeout(None if deadline is None else deadline - time.monotonic()):
            await waiting
    except TimeoutError:
        raise DeadlineError(PASSED) from None


@asynccontextmanager
async def holding(lock: asyncio.Lock | asyncio.Semaphore, deadline: float | None) -> AsyncIterator[None]:
    """Hold a lock or a place, which is waited for as in `in_time`."""
    await in_time(lock.acquire(), deadline)
    try:
        yield
    finally:
        lock.release()


@dataclass
class Turn:
    """The lock of one key, and how many hold it or wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


@asynccontextmanager
async def alone(under_way: dict[str, Turn], key: str, deadline: float | None) -> AsyncIterator[None]:
    """One at a time of what has this key, so that the second finds what the first has paid for. Raises as `holding`."""
    turn = under_way.setdefault(key, Turn())
    turn.users += 1
    try:
        async with holding(turn.lock, deadline):
            yield
    finally:
        turn.users -= 1
        if not turn.users:
            del under_way[key]

"""Waiting for one's turn: behind an equal call, or for a place among the calls in flight, till the deadline."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..errors import DeadlineError

PASSED = "The deadline has passed; ask a simpler question or allow more time."


@asynccontextmanager
async def holding(lock: asyncio.Lock | asyncio.Semaphore, deadline: float | None) -> AsyncIterator[None]:
    """Hold a lock or a place. `deadline` is a `time.monotonic` moment; raises `DeadlineError` once it has passed."""
    try:
        async with asyncio.timeout(None if deadline is None else deadline - time.monotonic()):
            await lock.acquire()
    except TimeoutError:
        raise DeadlineError(PASSED) from None
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def alone(under_way: dict[str, asyncio.Lock], key: str, deadline: float | None) -> AsyncIterator[None]:
    """One at a time of what has this key, so that the second finds what the first has paid for. Raises as `holding`."""
    lock = under_way.setdefault(key, asyncio.Lock())
    try:
        async with holding(lock, deadline):
            yield
    finally:
        if not lock.locked():
            under_way.pop(key, None)

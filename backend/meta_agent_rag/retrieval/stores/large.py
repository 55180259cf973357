"""Searches of large embedded indexes, which run in threads so that both sides work at the same time."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LARGE = 50_000
"""The number of passages from which a search takes so much longer than starting a thread that one pays."""


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work that must not keep running in its thread after a cancellation, parallel to what comes next."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise

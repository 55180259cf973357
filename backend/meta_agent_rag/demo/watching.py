"""Work that tells how far it is, as a stream: what it tells, then its result."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Told = TypeVar("Told")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Done(Generic[Result]):
    """The end of the work, with its result."""

    result: Result


async def watched(
    start: Callable[[Callable[[Told], None]], Coroutine[Any, Any, Result]],
) -> AsyncGenerator[Told | Done[Result], None]:
    """All that the work tells, at once, and at last its result; raises what the work raises.

    `start` is given the function by which the work tells. Closing or cancelling the stream cancels the work.
    """
    told: asyncio.Queue[Told | None] = asyncio.Queue()
    work = asyncio.create_task(start(told.put_nowait))
    work.add_done_callback(lambda _: told.put_nowait(None))
    try:
        while (item := await told.get()) is not None:
            yield item
        yield Done(result=work.result())
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

"""Each visitor's activity in a tab: one at a time, which can be stopped, dropped or left."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class StreamStopped:
    """The last item of a stream that its visitor stopped."""


@dataclass(kw_only=True, eq=False)
class _Stream:
    """A running stream; `dropped` if its output is no longer wanted."""

    work: "asyncio.Task[None]"
    stopped: bool = False
    dropped: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Streams:
    """The streams of all visitors of a tab; a new one replaces the previous one."""

    def __init__(self) -> None:
        self._running: dict[str, _Stream] = {}
        self._next: dict[str, object] = {}

    async def run(self, visitor: str, stream: AsyncGenerator[Item, None]) -> AsyncGenerator[Item | StreamStopped, None]:
        """The items of `stream`, which keeps running between requests for the next; raises its errors."""
        mine = self._next[visitor] = object()
        await self._ended(visitor)
        if self._next.get(visitor) is not mine:  # replaced meanwhile, or the page was closed
            await stream.aclose()
            return
        del self._next[visitor]
        news: asyncio.Queue[Item | None] = asyncio.Queue()
        running = _Stream(work=asyncio.create_task(_forwarded(stream, news.put_nowait)))
        running.work.add_done_callback(lambda _: news.put_nowait(None))
        self._running[visitor] = running
        try:
            while (item := await news.get()) is not None and not running.dropped:
                yield item
            if running.stopped and not running.dropped:
                yield StreamStopped()
            elif not running.dropped:
                running.work.result()
        finally:
            running.work.cancel()
            await asyncio.gather(running.work, return_exceptions=True)
            running.over.set()
            if self._running.get(visitor) is running:
                del self._running[visitor]

    def busy(self, visitor: str) -> bool:
        """Is anything running? A stopped stream does not count, even before it has closed."""
        running = self._running.get(visitor)
        return running is not None and not (running.stopped or running.dropped or running.work.done())

    def stop(self, visitor: str) -> None:
        """End the current work immediately, including a model's call; its stream closes with `StreamStopped`."""
        running = self._running.get(visitor)
        if running is not None and not running.work.done():
            running.stopped = True
            running.work.cancel()

    async def drop(self, visitor: str) -> None:
        """End the current work and wait for it; its stream yields nothing more, so later output is not overwritten."""
        self._next.pop(visitor, None)
        await self._ended(visitor)

    async def _ended(self, visitor: str) -> None:
        while (running := self._running.get(visitor)) is not None:
            running.dropped = True
            running.work.cancel()
            await running.over.wait()

    def leave(self, visitor: str) -> None:
        """The page was closed: end the current work without waiting."""
        self._next.pop(visitor, None)
        running = self._running.pop(visitor, None)
        if running is not None:
            running.dropped = True
            running.work.cancel()


async def _forwarded(stream: AsyncGenerator[Any, None], tell: Callable[[Any], None]) -> None:
    async with aclosing(stream):
        async for item in stream:
            tell(item)


Event = TypeVar("Event")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Finished(Generic[Result]):
    """The end of the work with its result."""

    result: Result


async def watched(
    start: Callable[[Callable[[Event], None]], Coroutine[Any, Any, Result]],
) -> AsyncGenerator[Event | Finished[Result], None]:
    """All messages of the work as they come, and finally its result; raises its errors.

    `start` receives the function for messages. Closing or cancelling the stream cancels the work.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    work = asyncio.create_task(start(events.put_nowait))
    work.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (item := await events.get()) is not None:
            yield item
        yield Finished(result=work.result())
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

"""What all tabs are made of: components by name, their events, and one activity for each visitor."""

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import InputError
from ..workbench import Workbench

if TYPE_CHECKING:
    import gradio as gr

Updates: TypeAlias = dict[str, Any]
"""New values of a tab's components, by name."""
Tell: TypeAlias = Callable[[Updates], None]
_BURST_SECONDS = 0.02
"""Updates within this time are shown together: a node's end and the next one's start."""


@dataclass(kw_only=True, eq=False)
class _Activity:
    """A visitor's activity; `dropped` if its output is no longer wanted."""

    work: "asyncio.Task[None]"
    stopped: bool = False
    dropped: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Activities:
    """What the visitors of a tab are doing; a new activity of a visitor replaces the previous one."""

    def __init__(self) -> None:
        self._running: dict[str, _Activity] = {}
        self._next: dict[str, object] = {}

    async def run(
        self, visitor: str, work: Callable[[Tell], Coroutine[Any, Any, None]]
    ) -> AsyncGenerator[Updates, None]:
        """The updates that `work` tells of; raises its errors. Closing the stream cancels the work.

        Work that is stopped may still tell of its end; the updates of dropped work are lost.
        """
        mine = self._next[visitor] = object()
        await self._ended(visitor)
        if self._next.get(visitor) is not mine:  # replaced meanwhile, or the page was closed
            return
        del self._next[visitor]
        news: asyncio.Queue[Updates | None] = asyncio.Queue()
        running = _Activity(work=asyncio.create_task(work(news.put_nowait)))
        running.work.add_done_callback(lambda _: news.put_nowait(None))
        self._running[visitor] = running
        try:
            over = False
            while not over:
                waiting = [await news.get()]
                await asyncio.sleep(_BURST_SECONDS)
                waiting += [news.get_nowait() for _ in range(news.qsize())]
                over = None in waiting or running.dropped
                merged = {name: value for updates in waiting if updates for name, value in updates.items()}
                if merged and not running.dropped:
                    yield merged
            if not (running.stopped or running.dropped):
                running.work.result()
        finally:
            running.work.cancel()
            await asyncio.gather(running.work, return_exceptions=True)
            running.over.set()
            if self._running.get(visitor) is running:
                del self._running[visitor]

    def busy(self, visitor: str) -> bool:
        """Whether anything runs that was not stopped."""
        running = self._running.get(visitor)
        return running is not None and not (running.stopped or running.dropped or running.work.done())

    def stop(self, visitor: str) -> None:
        """Cancel the work, including a model's call; its last updates are still shown."""
        running = self._running.get(visitor)
        if running is not None and not running.work.done():
            running.stopped = True
            running.work.cancel()

    async def drop(self, visitor: str) -> None:
        """Cancel the work and wait for its end; nothing that it tells of is shown any more."""
        self._next.pop(visitor, None)
        await self._ended(visitor)

    async def _ended(self, visitor: str) -> None:
        while (running := self._running.get(visitor)) is not None:
            running.dropped = True
            running.work.cancel()
            await running.over.wait()

    def leave(self, visitor: str) -> None:
        """The page was closed: cancel the work without waiting."""
        self._next.pop(visitor, None)
        running = self._running.pop(visitor, None)
        if running is not None:
            running.dropped = True
            running.work.cancel()


def visitor_of(request: "gr.Request") -> str:
    """The visitor: one open page of the app, with its own state and budget."""
    return request.session_hash or "unknown"


def uploaded_files(paths: Sequence[str] | None) -> list[Path]:
    """The files of an upload; raises `InputError` for a path outside Gradio's upload folder, whoever named it."""
    from gradio.utils import get_upload_folder

    folder, files = Path(get_upload_folder()).resolve(), [Path(path).resolve() for path in paths or ()]
    if not all(file.is_relative_to(folder) for file in files):
        raise InputError("Only files that were uploaded here can be read; upload the file again.")
    return files


@dataclass(kw_only=True, eq=False)
class Tab(ABC):
    """A tab: `lay_out` creates its components in `parts`, and `connect` their events."""

    workbench: Workbench
    parts: dict[str, Any] = field(default_factory=dict)
    activities: Activities = field(default_factory=Activities)

    @abstractmethod
    def lay_out(self) -> None:
        """Create the components in the tab that is open."""

    @abstractmethod
    def connect(self, page: "gr.Blocks") -> None:
        """Connect the components; the events of `page` are a visitor's arrival and departure."""

    def on(
        self, triggers: Any, handler: Callable[..., Any], inputs: Sequence[str] = (), *, repeated: bool = False
    ) -> None:
        """Call `handler(request, *values)` with the values of `inputs`; it returns or yields updates.

        A plain function runs in a thread. With `repeated` the event is handled again before its last handling is over.
        """
        import gradio as gr

        async def handled(request: gr.Request, *values: Any) -> AsyncIterator[dict[Any, Any]]:
            yield gr.skip()  # of a handler that yields nothing, Gradio empties all outputs
            async for updates in _results(handler, request, *values):
                if updates:
                    yield {self.parts[name]: value for name, value in updates.items()}

        gr.on(
            triggers,
            handled,
            [self.parts[name] for name in inputs],
            list(self.parts.values()),
            show_progress="hidden",
            api_visibility="private",
            trigger_mode="multiple" if repeated else "once",
        )

    def left(self, visitor: str) -> None:
        """The visitor has closed the page: end all work, so that nothing more is spent."""
        self.activities.leave(visitor)

    async def stopped(self, request: "gr.Request") -> Updates:
        """Handle the button that stops the visitor's activity."""
        self.activities.stop(visitor_of(request))
        return {}


async def _results(handler: Callable[..., Any], *given: Any) -> AsyncIterator[Updates]:
    if inspect.isasyncgenfunction(handler):
        async for updates in handler(*given):
            yield updates
    elif inspect.iscoroutinefunction(handler):
        yield await handler(*given)
    else:
        yield await asyncio.to_thread(handler, *given)

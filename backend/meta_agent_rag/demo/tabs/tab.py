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


class Activities:
    """What the visitors of a tab are doing; a new activity of a visitor replaces the previous one."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def run(
        self, visitor: str, work: Callable[[Tell], Coroutine[Any, Any, None]]
    ) -> AsyncGenerator[Updates, None]:
        """The updates that `work` tells of; raises its errors. Closing the stream cancels the work.

        Work that is stopped may still tell of its end; the updates of dropped work are lost.
        """
        news: asyncio.Queue[Updates | None] = asyncio.Queue()
        async with self._turns.setdefault(visitor, asyncio.Lock()):
            await self.drop(visitor)
            task = self._running[visitor] = asyncio.create_task(work(news.put_nowait))
        task.add_done_callback(lambda _: news.put_nowait(None))
        try:
            waiting: list[Updates | None] = []
            while None not in waiting:
                waiting = [await news.get()]
                await asyncio.sleep(_BURST_SECONDS)
                waiting += [news.get_nowait() for _ in range(news.qsize())]
                if self._running.get(visitor) is not task:
                    return
                if merged := {name: value for updates in waiting if updates for name, value in updates.items()}:
                    yield merged
            if not task.cancelled():
                task.result()
        finally:
            await _ended(task)
            if self._running.get(visitor) is task:
                del self._running[visitor]

    def busy(self, visitor: str) -> bool:
        """Whether anything runs that was not stopped."""
        task = self._running.get(visitor)
        return task is not None and not (task.done() or task.cancelling())

    def stop(self, visitor: str) -> None:
        """Cancel the work, including a model's call; its last updates are still shown."""
        if visitor in self._running:
            self._running[visitor].cancel()

    async def end(self, visitor: str) -> None:
        """Cancel the work and wait for its end; its last updates are still shown."""
        if visitor in self._running:
            await _ended(self._running[visitor])

    async def drop(self, visitor: str) -> None:
        """Cancel the work and wait for its end; nothing that it tells of is shown any more."""
        while (task := self._running.pop(visitor, None)) is not None:
            await _ended(task)

    def leave(self, visitor: str) -> None:
        """The page was closed: cancel the work without waiting."""
        self._turns.pop(visitor, None)
        if (task := self._running.pop(visitor, None)) is not None:
            task.cancel()


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


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

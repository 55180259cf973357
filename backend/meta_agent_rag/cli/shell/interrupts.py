"""Handles Ctrl+C during a session: it stops the current work, never the session."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818  # nothing went wrong
    """The user stopped the current work."""


@dataclass(kw_only=True)
class Interrupts:
    """Runs one piece of work at a time, which Ctrl+C cancels; otherwise, Ctrl+C does nothing."""

    _task: "asyncio.Task[Any] | None" = field(default=None, repr=False)
    _stopping: bool = False

    async def finished(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work; raises `Stopped` if the user stopped it, and the errors of the work."""
        task = asyncio.ensure_future(work)
        self._task, self._stopping = task, False
        try:
            return await task
        except asyncio.CancelledError:
            around = asyncio.current_task()
            if self._stopping and not (around is not None and around.cancelling()):
                raise Stopped from None
            raise
        finally:
            self._task = None

    def stop(self) -> None:
        """Cancel the current work; calling it again has no effect."""
        if self._task is not None and not self._stopping:
            self._stopping = True
            self._task.cancel()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Make Ctrl+C call `stop`, on platforms whose event loop supports it."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, self.stop)
        try:
            yield
        finally:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)


@contextmanager
def raising() -> Iterator[None]:
    """Make Ctrl+C raise `KeyboardInterrupt`, for a read that blocks the event loop."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""The source of the user's lines, and Ctrl+C, which stops the current work and never the session."""

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .commands import completions

T = TypeVar("T")
PROMPT = "> "
HISTORY_FILE = "chat_history"
"""In the data folder: the input history, for the arrow keys."""


class LineCleared(Exception):  # noqa: N818  # nothing went wrong
    """The user pressed Ctrl+C while typing."""


class Lines(Protocol):
    """Provides the user's lines."""

    async def next(self) -> str:
        """The next line. Raises `EOFError` at the end, `LineCleared` if the typed text is discarded."""


class PlainLines:
    """Lines of standard input, unedited; a prompt is shown only at a terminal."""

    async def next(self) -> str:
        """The next line, without its line break. Blocks the event loop, which has no other work at this time."""
        typed = sys.stdin.isatty()
        try:
            with _raising():  # before the prompt, which invites input, including Ctrl+C
                if typed and sys.stdout.isatty():
                    sys.stdout.write(PROMPT)
                    sys.stdout.flush()
                line = sys.stdin.readline()
        except KeyboardInterrupt:
            if not typed:
                raise
            await asyncio.sleep(0.01)  # lets the event loop handle the signal before work begins
            raise LineCleared from None
        if not line:
            raise EOFError
        return line.rstrip("\r\n")


class PromptedLines:
    """Lines edited with prompt_toolkit, with a history on disk and completion of slash commands."""

    def __init__(self, folder: Path, *, coloured: bool) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.keys import Keys
        from prompt_toolkit.output import ColorDepth

        class Kept(FileHistory):
            def store_string(self, string: str) -> None:
                with suppress(OSError):  # a line that cannot be stored is still valid
                    super().store_string(string.encode("utf-8", "replace").decode("utf-8"))

        class Slashes(Completer):
            def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
                typed = document.text_before_cursor
                for text, meaning in completions(typed):
                    yield Completion(text, start_position=-len(typed), display_meta=meaning)

        keys = KeyBindings()
        # a pasted colour code looks like a mouse event, which the library's own binding fails to parse
        keys.add(Keys.Vt100MouseEvent)(lambda event: None)
        self._session: PromptSession[str] = PromptSession(
            history=Kept(folder / HISTORY_FILE),
            key_bindings=keys,
            completer=Slashes(),
            color_depth=None if coloured else ColorDepth.DEPTH_1_BIT,
        )

    async def next(self) -> str:
        """The next line; Ctrl+C discards it, Ctrl+D ends the input."""
        try:
            return await self._session.prompt_async(PROMPT, handle_sigint=False)
        except KeyboardInterrupt:
            raise LineCleared from None


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
def _raising() -> Iterator[None]:
    """Make Ctrl+C raise `KeyboardInterrupt`, for a read that blocks the event loop."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

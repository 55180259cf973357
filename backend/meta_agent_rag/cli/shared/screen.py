"""Output to a person: colour, a spinner and streamed words on a terminal, plain lines elsewhere."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...wording import printable
from .command import complain, console, plain

if TYPE_CHECKING:
    from ...agent.engine import Step
    from ...llm.messages import Request

WORD_SECONDS = 0.02
ANSWER_SECONDS = 1.5
"""An answer streams one word per `WORD_SECONDS`, or faster if it would take longer than this."""
_DRAFTS = frozenset({"write", "rewrite"})
_SPINNER = 4
"""Columns of the spinner, and of the margin that keeps the cursor in its line."""


@dataclass(kw_only=True)
class Screen:
    """Standard output; all printed text is stripped of control characters, except those of this class."""

    _status: Any = field(default=None, repr=False)
    _stage: str = field(default="", repr=False)

    @cached_property
    def console(self) -> Any:
        """Rich's console: with styles if a terminal supports them and NO_COLOR is not set."""
        drawn = console(force_terminal=sys.stdout.isatty())
        wants_none = drawn.no_color or not drawn.is_terminal
        return console(force_terminal=drawn.is_terminal, color_system=None) if wants_none else drawn

    @property
    def animated(self) -> bool:
        """Is there a terminal with cursor control?"""
        return bool(self.console.is_terminal and not self.console.is_dumb_terminal)

    @property
    def coloured(self) -> bool:
        """Are styles shown?"""
        return self.console.color_system is not None

    def markup(self, text: str) -> None:
        """Print a line of Rich markup; parts of unknown origin must have passed through `plain`."""
        self.console.print(text)

    def line(self, text: object = "") -> None:
        """Print a line verbatim."""
        self.console.print(plain(text))

    def note(self, text: object) -> None:
        """Print a less prominent line."""
        self.console.print(f"[dim]{plain(text)}[/]")

    def fault(self, text: object) -> None:
        """Print an error in one sentence; on stderr if the output is not a terminal."""
        if self.console.is_terminal:
            self.console.print(f"[red]{plain(text)}[/]")
        else:
            complain(printable(text))

    async def answer(self, text: str) -> None:
        """Print a verified text, word by word on a terminal; if cancelled, print the rest at once."""
        if not self.animated:
            self.line(text)
            return
        left = self._wrapped(text)
        seconds = min(WORD_SECONDS, ANSWER_SECONDS / (left.count(" ") + 1))
        try:
            while left:
                word, blank, left = left.partition(" ")
                self._write(word + blank)
                await asyncio.sleep(seconds)
        finally:
            self._write(f"{left}\n")

    @contextmanager
    def working(self) -> Iterator[None]:
        """Show a spinner, on a terminal; `stage` shows the current step beside it."""
        if not self.animated:
            yield
            return
        with self.console.status("Reading the question") as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def stage(self, step: "Step") -> None:
        """Show which node of the loop starts."""
        self._stage = step.words
        if self._status is not None:
            self._status.update(plain(step.words))

    def writing(self, request: "Request", text: str) -> None:
        """Show the end of a draft while it is written."""
        if self._status is None or request.stage not in _DRAFTS:
            return
        room = self.console.width - len(self._stage) - len(": ") - _SPINNER
        if words := last_words(text, room):
            self._status.update(f"{plain(self._stage)}: [dim]{plain(words)}[/]")

    def progress(self, words: str) -> Callable[[int, int], None]:
        """Show next to the spinner how many of how many parts are done."""

        def advance(done: int, of: int) -> None:
            if self._status is not None and done < of:
                self._status.update(f"{plain(words)} {done + 1} of {of}")

        return advance

    def _wrapped(self, text: str) -> str:
        from rich.text import Text

        lines = Text(printable(text)).wrap(self.console, self.console.width)
        return "\n".join(line.plain.rstrip() for line in lines)

    def _write(self, text: str) -> None:
        self.console.file.write(text)
        self.console.file.flush()


def last_words(text: str, columns: int) -> str:
    """The end of what a reply says so far: of the last value if it is JSON.

    >>> last_words('{"quotes": ["Faust is by Goethe."], "answer": "Goethe wr', 40)
    'Goethe wr'
    >>> last_words('{"quotes": ["Faust is by Goethe."], "ans', 40)
    'Faust is by Goethe.'
    >>> last_words("It was Johann Wolfgang von Goethe", 12)
    '… von Goethe'
    """
    from pydantic_core import from_json

    try:
        texts = _texts(from_json(text, allow_partial="trailing-strings"))
    except ValueError:
        texts = [text]
    words = " ".join(printable(texts[-1]).split()) if texts else ""
    return words if len(words) <= columns else f"…{words[len(words) - max(columns - 1, 0) :]}"


def _texts(value: object) -> list[str]:
    """All texts of a JSON value, in order."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]

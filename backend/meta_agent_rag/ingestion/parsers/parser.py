"""What a parser file exports, and what a parser is given."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from ..decoding import decoded
from ..document import Document

LONGEST_TITLE = 200
"""Characters; what is longer is no title."""


@dataclass(frozen=True, kw_only=True)
class File:
    """A file's name and bytes. `unpacked_bytes` is the most that it may unpack to."""

    name: str
    content: bytes
    unpacked_bytes: int = 256 * 1024 * 1024

    @property
    def stem(self) -> str:
        """The name without folder and ending, as a title of last resort."""
        return PurePath(self.name).stem or self.name

    @cached_property
    def text(self) -> str | None:
        """The content as text, `None` where it is none."""
        return decoded(self.content)

    def ends_with(self, suffixes: tuple[str, ...]) -> bool:
        """Is the name's ending one of these, in whatever case?"""
        return self.name.lower().endswith(suffixes)


@dataclass(frozen=True, kw_only=True)
class Parser:
    """Reads files of one kind.

    `recognises` looks at the content; the name may decide between kinds of text alone. Parsers are asked
    by rising `priority`: those with a signature (0) before those that could take any text (9).
    `parse` raises `Refused`; any other exception of it counts as an unreadable file.
    """

    kind: str
    suffixes: tuple[str, ...]
    priority: int
    recognises: Callable[[File], bool]
    parse: Callable[[File], Document]

"""Parsers, one file a format; a file that exports `PARSER` is found by itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import PurePath

from ...discovery import exported
from ...errors import DuplicateNameError
from ..document import Document
from ..text import decoded

__all__ = ["File", "Parser", "by_priority", "discover_parsers", "known_suffixes"]

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
    `parse` raises `Refused`; any other exception of it counts as an unreadable file. `example` is a small file with
    a sentence of text, on which the contract tests work (those of the formats below are written by the tests).
    """

    kind: str
    suffixes: tuple[str, ...]
    priority: int
    recognises: Callable[[File], bool]
    parse: Callable[[File], Document]
    example: bytes = b""


@cache
def discover_parsers() -> tuple[Parser, ...]:
    """Every parser of this folder, in the order of asking; loads no format's library. Raises `DuplicateNameError`."""
    return by_priority(exported(__name__, "PARSER", Parser))


def known_suffixes() -> tuple[str, ...]:
    """How names of files end that some parser reads, sorted, each with its dot."""
    return tuple(sorted({suffix for parser in discover_parsers() for suffix in parser.suffixes}))


def by_priority(parsers: Iterable[Parser]) -> tuple[Parser, ...]:
    """Parsers in the order of asking; a kind that comes twice raises `DuplicateNameError`."""
    found: dict[str, Parser] = {}
    for parser in parsers:
        if parser.kind in found:
            raise DuplicateNameError(f"Two parsers are for the kind {parser.kind!r}; rename one of them.")
        found[parser.kind] = parser
    return tuple(sorted(found.values(), key=lambda parser: (parser.priority, parser.kind)))

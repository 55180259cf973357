"""Parsers, one file per format; a file that exports `PARSER` is discovered automatically."""

import io
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import PurePath

from ...discovery import exported
from ...errors import DuplicateNameError
from ..document import Document, PassageRow
from ..text import decoded

__all__ = ["File", "Parser", "by_priority", "discover_parsers", "known_suffixes"]

LONGEST_TITLE = 200
"""The most characters of a title."""


@dataclass(frozen=True, kw_only=True)
class File:
    """A file's name and bytes. `unpacked_bytes` is the maximum unpacked size."""

    name: str
    content: bytes
    unpacked_bytes: int = 256 * 1024 * 1024

    @property
    def stem(self) -> str:
        """The name without folder and extension, as a fallback title."""
        return PurePath(self.name).stem or self.name

    @cached_property
    def text(self) -> str | None:
        """The content as text, `None` if it is not text."""
        return decoded(self.content)

    def ends_with(self, suffixes: tuple[str, ...]) -> bool:
        """Does the name end with one of these, ignoring case?"""
        return self.name.lower().endswith(suffixes)


@dataclass(frozen=True, kw_only=True)
class Parser:
    """Reads files of one kind.

    `recognises` examines the content; the name may only decide between kinds of text. Parsers are tried
    in ascending `priority`: those with a signature (0) before those that accept any text (9).
    `parse` raises `Refused`; any other exception counts as an unreadable file. `example` is a small file with
    a sentence of text for the contract tests (which write those of the formats below themselves).

    `rows`, for formats of one passage per line, reads a file of any size as a stream: it yields rows, and returns the
    document without them. It receives the beginning of the file, which `recognises` has accepted.
    """

    kind: str
    suffixes: tuple[str, ...]
    priority: int
    recognises: Callable[[File], bool]
    parse: Callable[[File], Document]
    example: bytes = b""
    rows: Callable[[File, io.RawIOBase], Generator[PassageRow, None, Document]] | None = None


@cache
def discover_parsers() -> tuple[Parser, ...]:
    """Every parser of this folder, in order of priority, without loading libraries. Raises `DuplicateNameError`."""
    return by_priority(exported(__name__, "PARSER", Parser))


def known_suffixes() -> tuple[str, ...]:
    """The file name extensions of all parsers, sorted, each with its dot."""
    return tuple(sorted({suffix for parser in discover_parsers() for suffix in parser.suffixes}))


def by_priority(parsers: Iterable[Parser]) -> tuple[Parser, ...]:
    """Parsers in order of priority; a duplicate kind raises `DuplicateNameError`."""
    found: dict[str, Parser] = {}
    for parser in parsers:
        if parser.kind in found:
            raise DuplicateNameError(f"Two parsers are for the kind {parser.kind!r}; rename one of them.")
        found[parser.kind] = parser
    return tuple(sorted(found.values(), key=lambda parser: (parser.priority, parser.kind)))

"""Parsers; a file that exports `PARSER` is discovered. `read_document` chooses one by a file's content."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import PurePath

from ...discovery import exported
from ..document import Block, Document, Refused
from ..text import clean, decoded, fault_of, one_line

__all__ = ["File", "Parser", "discover_parsers", "known_suffixes", "read_document"]

ROW_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
"""The endings of the names of files of ready-made passages (see `rows`)."""
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
        """Whether the name ends with one of these, ignoring case."""
        return self.name.lower().endswith(suffixes)


@dataclass(frozen=True, kw_only=True)
class Parser:
    """Reads files of one kind.

    `recognises` examines the content; the name may only decide between kinds of text. Parsers are tried
    in ascending `priority`: those with a signature (0) before those that accept any text (9).
    `parse` raises `Refused`; any other exception counts as an unreadable file. `example` is a small file with
    a sentence of text for the contract tests.
    """

    kind: str
    suffixes: tuple[str, ...]
    priority: int
    recognises: Callable[[File], bool]
    parse: Callable[[File], Document]
    example: bytes = b""


@cache
def discover_parsers() -> tuple[Parser, ...]:
    """Every parser of this folder, in order of priority, without loading libraries."""
    return tuple(sorted(exported(__name__, "PARSER", Parser), key=lambda parser: (parser.priority, parser.kind)))


def known_suffixes() -> tuple[str, ...]:
    """The file name extensions that can be read, sorted, each with its dot."""
    return tuple(sorted({*ROW_SUFFIXES, *(suffix for parser in discover_parsers() for suffix in parser.suffixes)}))


def read_document(file: File) -> Document:
    """The document in `file`, cleaned of invisible characters and empty blocks. Raises `Refused`.

    Meant for a separate process (see `isolation`): a parser may take any amount of time and memory.
    """
    if not file.content:
        raise Refused("empty", "it has 0 bytes")
    parser = next((parser for parser in discover_parsers() if parser.recognises(file)), None)
    if parser is None:
        raise Refused(
            "type", "its content is in none of the supported formats, whatever its name; convert it, or leave it out"
        )
    try:
        document = _cleaned(parser.parse(file), file)
    except (Refused, MemoryError):
        raise
    except RecursionError as error:
        raise Refused("limit", "it is nested too deeply") from error
    except Exception as error:
        raise Refused("unreadable", f"the parser for {parser.kind} failed ({fault_of(error)})") from error
    if not any(map(str.isalnum, document.text)):
        raise Refused(
            "no_text", "it contains no text" + (", perhaps a scan: run OCR on it first" if document.pages else "")
        )
    return document


def _cleaned(document: Document, file: File) -> Document:
    blocks = (
        Block(
            text=clean(block.text).strip(),
            section=one_line(block.section or "")[:LONGEST_TITLE] or None,
            page=block.page,
        )
        for block in document.blocks
    )
    aliases = (one_line(alias)[:LONGEST_TITLE] for alias in document.aliases)
    title = one_line(document.title)[:LONGEST_TITLE].strip() or one_line(file.stem)
    return replace(
        document,
        title=title,
        blocks=tuple(block for block in blocks if block.text),
        aliases=tuple(dict.fromkeys(alias for alias in aliases if alias and alias != title)),
    )

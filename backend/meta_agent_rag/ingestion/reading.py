"""From a file's bytes to a document: chooses the parser, turns its errors into reasons, cleans the text."""

import io
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from .document import Block, Document, PassageRow, Refused
from .parsers import LONGEST_TITLE, File, Parser, discover_parsers
from .text import clean, fault_of, is_wide, one_line

HEAD_BYTES = 1024 * 1024
"""The beginning of a file, from which it is recognised if it can be read row by row."""


def read_document(file: File, parsers: Iterable[Parser] | None = None) -> Document:
    """The document in `file`, cleaned of invisible characters and empty blocks. Raises `Refused`.

    Meant for a separate process (see `isolation`): a parser may take any amount of time and memory.
    """
    if not file.content:
        raise Refused("empty", "it has 0 bytes")
    parser = _chosen(file, discover_parsers() if parsers is None else parsers)
    with _refusing(parser):
        document = _cleaned(parser.parse(file), file)
    if not any(character.isalnum() for text in _texts(document) for character in text):
        raise Refused(
            "no_text", "it contains no text" + (", perhaps a scan: run OCR on it first" if document.pages else "")
        )
    return document


def streaming_parser(head: File, parsers: Iterable[Parser] | None = None) -> Parser | None:
    """The parser that reads a file with this beginning row by row; `None` if it must be read as a whole."""
    known = tuple(discover_parsers() if parsers is None else parsers)
    if not any(parser.rows is not None and parser.recognises(head) for parser in known):
        return None
    if is_wide(head.content):  # it is decoded as a whole
        return None
    first = next((parser for parser in known if parser.recognises(head)), None)
    return first if first is not None and first.rows is not None else None


def read_rows(file: File, parser: Parser, stream: io.RawIOBase) -> Generator[PassageRow, None, Document]:
    """The rows of a file, cleaned, one at a time; returns its document without them. Raises `Refused`.

    `file` is its beginning, as for `streaming_parser`. If this raises, the rows yielded so far do not count.
    """
    assert parser.rows is not None
    rows = parser.rows(file, stream)
    has_text = False
    while True:
        with _refusing(parser):
            try:
                row = _cleaned_row(next(rows))
            except StopIteration as end:
                document: Document = end.value
                break
        has_text = has_text or any(map(str.isalnum, row.text))
        yield row
    if not has_text:
        raise Refused("no_text", "it contains no text")
    return _cleaned(document, file)


@contextmanager
def _refusing(parser: Parser) -> Iterator[None]:
    """Any fault of a parser as the reason for a refusal."""
    try:
        yield
    except (Refused, MemoryError):
        raise
    except RecursionError as error:
        raise Refused("limit", "it is nested too deeply") from error
    except Exception as error:
        raise Refused("unreadable", f"the parser for {parser.kind} failed ({fault_of(error)})") from error


def _cleaned_row(row: PassageRow) -> PassageRow:
    return PassageRow(id=row.id, title=one_line(row.title), text=clean(row.text))


def _chosen(file: File, parsers: Iterable[Parser]) -> Parser:
    parser = next((parser for parser in parsers if parser.recognises(file)), None)
    if parser is None:
        raise Refused(
            "type", "its content is in none of the supported formats, whatever its name; convert it, or leave it out"
        )
    return parser


def _texts(document: Document) -> Iterable[str]:
    return (*(block.text for block in document.blocks), *(row.text for row in document.rows))


def _cleaned(document: Document, file: File) -> Document:
    blocks = (_cleaned_block(block) for block in document.blocks)
    aliases = (one_line(alias)[:LONGEST_TITLE] for alias in document.aliases)
    title = one_line(document.title)[:LONGEST_TITLE].strip() or one_line(file.stem)
    return replace(
        document,
        title=title,
        blocks=tuple(block for block in blocks if block.text),
        rows=tuple(map(_cleaned_row, document.rows)),
        aliases=tuple(dict.fromkeys(alias for alias in aliases if alias and alias != title)),
    )


def _cleaned_block(block: Block) -> Block:
    section = one_line(block.section or "")[:LONGEST_TITLE] or None
    return replace(block, text=clean(block.text).strip(), section=section)

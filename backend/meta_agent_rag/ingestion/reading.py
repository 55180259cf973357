"""From a file's bytes to a document: chooses the parser, turns its errors into reasons, cleans the text."""

from collections.abc import Iterable
from dataclasses import replace

from .document import Block, Document, PassageRow, Refused
from .parsers import LONGEST_TITLE, File, Parser, discover_parsers
from .text import clean, one_line


def read_document(file: File, parsers: Iterable[Parser] | None = None) -> Document:
    """The document in `file`, cleaned of invisible characters and empty blocks. Raises `Refused`.

    Meant for a separate process (see `isolation`): a parser may take any amount of time and memory.
    """
    if not file.content:
        raise Refused("empty", "it has 0 bytes")
    parser = _chosen(file, discover_parsers() if parsers is None else parsers)
    try:
        document = _cleaned(parser.parse(file), file)
    except (Refused, MemoryError):
        raise
    except RecursionError as error:
        raise Refused("limit", "it is nested too deeply") from error
    except Exception as error:
        cause = f"{type(error).__name__}: {one_line(str(error))[:120]}"
        raise Refused("unreadable", f"the parser for {parser.kind} failed ({cause})") from error
    if not any(character.isalnum() for text in _texts(document) for character in text):
        raise Refused(
            "no_text", "it contains no text" + (", perhaps a scan: run OCR on it first" if document.pages else "")
        )
    return document


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
    rows = (PassageRow(id=row.id, title=one_line(row.title), text=clean(row.text)) for row in document.rows)
    aliases = (one_line(alias)[:LONGEST_TITLE] for alias in document.aliases)
    title = one_line(document.title)[:LONGEST_TITLE].strip() or one_line(file.stem)
    return replace(
        document,
        title=title,
        blocks=tuple(block for block in blocks if block.text),
        rows=tuple(rows),
        aliases=tuple(dict.fromkeys(alias for alias in aliases if alias and alias != title)),
    )


def _cleaned_block(block: Block) -> Block:
    section = one_line(block.section or "")[:LONGEST_TITLE] or None
    return replace(block, text=clean(block.text).strip(), section=section)

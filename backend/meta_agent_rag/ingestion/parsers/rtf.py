"""Rich text (.rtf), with striprtf: paragraphs, and tables by cells."""

from collections.abc import Iterator
from itertools import groupby

from ..content.tables import row_text, table_blocks
from ..document import Block, Document
from ..text import one_line
from . import LONGEST_TITLE, File, Parser

_SUFFIXES = (".rtf",)
_SIGNATURE = b"{\\rtf"


def _recognises(file: File) -> bool:
    return file.content.lstrip().startswith(_SIGNATURE)


def _parse(file: File) -> Document:
    from striprtf.striprtf import rtf_to_text

    # one byte per character: striprtf decodes escapes with the code page that the file states
    text: str = rtf_to_text(file.content.decode("latin-1"), errors="replace")  # type: ignore[no-untyped-call]
    blocks = tuple(_blocks(text))
    first = one_line(blocks[0].text) if blocks else ""
    return Document(title=first if 0 < len(first) <= LONGEST_TITLE // 2 else file.stem, kind="rtf", blocks=blocks)


def _blocks(text: str) -> Iterator[Block]:
    """One block per line; striprtf ends each table cell with a bar."""
    for is_table, lines in groupby(text.split("\n"), key=lambda line: line.rstrip().endswith("|")):
        if is_table:
            rows = (row_text(line.rstrip().removesuffix("|").split("|")) for line in lines)
            yield from (Block(text=block) for block in table_blocks(rows))
        else:
            yield from (Block(text=line.strip()) for line in lines if line.strip())


PARSER = Parser(kind="rtf", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)

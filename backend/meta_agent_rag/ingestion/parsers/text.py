"""Plain text: paragraphs between blank lines."""

import re

from ..document import Block, Document
from ..text import clean, flowed
from . import File, Parser

_ROWS = (".csv", ".tsv", ".log", ".json", ".xml", ".yaml", ".yml")
"""Files whose lines are rows, which are not joined."""
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_LONGEST_HEADLINE = 100
_SHORTEST_WRAPPED, _LONGEST_WRAPPED = 45, 120


def _parse(file: File) -> Document:
    parts = _BLANK_LINES.split(clean(file.text or "").strip())
    paragraphs = parts if file.ends_with(_ROWS) else [unwrapped(part) for part in parts]
    headline = paragraphs[0]
    is_title = len(paragraphs) > 1 and len(headline) <= _LONGEST_HEADLINE and not headline.endswith((".", ",", ";"))
    title = headline if is_title and "\n" not in headline else file.stem
    return Document(title=title, kind="text", blocks=tuple(Block(text=text) for text in paragraphs))


def unwrapped(paragraph: str) -> str:
    """A paragraph broken into lines of similar length, joined into one line; others keep their lines."""
    lines = [line.strip() for line in paragraph.split("\n")]
    widths = [len(line) + sum(character > "\u2e7f" for character in line) for line in lines[:-1]]
    full = all(_SHORTEST_WRAPPED <= width <= _LONGEST_WRAPPED for width in widths)
    return flowed("\n".join(lines)) if full else "\n".join(lines)


PARSER = Parser(
    kind="text",
    suffixes=(".txt", ".text", ".rst", *_ROWS),
    priority=9,
    recognises=lambda file: file.text is not None,
    parse=_parse,
)

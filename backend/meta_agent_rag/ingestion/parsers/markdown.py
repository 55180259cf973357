"""Markdown (CommonMark with tables), with YAML front matter."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ..document import Block, Document
from ..tables import row_text, table_blocks
from ..text import clean, flowed, one_line
from . import File, Parser
from .html import blocks_of, soup_of

if TYPE_CHECKING:
    from markdown_it.token import Token

_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd")
_MOST_NESTED = 100

_MOST_ALIASES = 50
"""The most names beside the title; further ones are dropped."""


_NOTE = re.compile(r"^\[\^([^\]\s]{1,40})\]:[ \t]*", re.M)
_NOTE_MARK = re.compile(r"\[\^([^\]\s]{1,40})\]")
"""Footnotes are no part of CommonMark: their marks and texts would be lost, or read as links."""


def _recognises(file: File) -> bool:
    return file.ends_with(_SUFFIXES) and file.text is not None


def _parse(file: File) -> Document:
    from markdown_it import MarkdownIt

    front, body, notes = _front_matter(clean(file.text or "").lstrip())
    reader = MarkdownIt("commonmark", {"maxNesting": _MOST_NESTED}).enable("table")
    tokens = reader.parse(_NOTE_MARK.sub(r" (note \1)", _NOTE.sub(r"\n\n(Note \1) ", body)))
    title = _name(front.get("title")) or _first_heading(tokens) or file.stem
    return Document(
        title=title,
        kind="markdown",
        blocks=tuple(_blocks(tokens)),
        aliases=tuple(_names(front.get("aliases")) + _names(front.get("alias")))[:_MOST_ALIASES],
        notes=notes,
    )


def _front_matter(text: str) -> tuple[Mapping[str, object], str, tuple[str, ...]]:
    """Front matter (safe YAML only), the text without it, and a note if it could not be read."""
    import frontmatter
    import yaml
    from frontmatter.default_handlers import YAMLHandler

    handler = YAMLHandler()
    if not handler.detect(text):  # `parse` alone would also accept a rule further down as its beginning
        return {}, text, ()
    try:
        front, body = frontmatter.parse(text, handler=handler)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):  # a date such as 2020-13-45 is a ValueError
        return {}, text, ("its front matter is not valid YAML and was read as text",)
    return (front, body, ()) if front else ({}, text, ())  # words between two rules are also YAML


def _name(value: object) -> str:
    """A title or alias; YAML reads some as numbers or dates."""
    is_list = isinstance(value, list | dict)
    return "" if value is None or is_list else one_line(str(value))


def _names(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [name for name in map(_name, values) if name]


def _first_heading(tokens: Sequence["Token"]) -> str:
    """The first heading of the highest level that occurs."""
    headings = [
        (opening.tag, _inline_text(content)) for opening, content in pairwise(tokens) if opening.type == "heading_open"
    ]
    return min(headings, key=lambda heading: heading[0])[1] if headings else ""


def _blocks(tokens: Sequence["Token"]) -> Iterator[Block]:
    section: str | None = None
    rows: list[str] = []
    cells: list[str] = []
    number = ""
    for token, before in zip(tokens, [None, *tokens], strict=False):
        opened = before.type if before is not None else ""
        if token.type == "inline" and opened in {"th_open", "td_open"}:
            cells.append(_inline_text(token))
        elif token.type == "inline":
            text = number + _inline_text(token)
            number = ""
            section = text if opened == "heading_open" else section
            yield Block(text=text, section=section)
        elif token.type == "list_item_open":
            number = f"{token.info}{token.markup} " if token.info else ""
        elif token.type == "tr_close":
            rows.append(row_text(cells))
            cells = []
        elif token.type == "table_close":
            yield from (Block(text=text, section=section) for text in table_blocks(rows))
            rows = []
        elif token.type in {"fence", "code_block"}:
            yield Block(text=token.content, section=section)
        elif token.type == "html_block":
            yield from (Block(text=block.text, section=section) for block in blocks_of(soup_of(token.content)))


def _inline_text(token: "Token") -> str:
    """The text of a line without markup, including link texts and image descriptions."""
    breaks = {"softbreak": "\n", "hardbreak": "\v"}
    parts = [breaks.get(child.type, child.content) for child in token.children or () if child.type != "html_inline"]
    return "\n".join(map(flowed, "".join(parts).split("\v")))


PARSER = Parser(kind="markdown", suffixes=_SUFFIXES, priority=3, recognises=_recognises, parse=_parse)

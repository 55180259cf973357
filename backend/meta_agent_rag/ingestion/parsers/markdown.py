"""Markdown (CommonMark with tables), with YAML front matter; read as the HTML that it becomes."""

import re
from collections.abc import Mapping

from ..document import Document
from ..text import clean, one_line
from . import File, Parser
from .html import blocks_of, soup_of

_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd")
_MOST_NESTED, _MOST_ALIASES = 100, 50
_NOTE = re.compile(r"^\[\^([^\]\s]{1,40})\]:[ \t]*", re.M)
_NOTE_MARK = re.compile(r"\[\^([^\]\s]{1,40})\]")
"""Footnotes are no part of CommonMark: their marks and texts would be lost, or read as links."""


def _parse(file: File) -> Document:
    from markdown_it import MarkdownIt

    front, body, notes = _front_matter(clean(file.text or "").lstrip())
    reader = MarkdownIt("commonmark", {"maxNesting": _MOST_NESTED}).enable("table")
    labels = set(_NOTE.findall(body))  # a pattern such as [^a-z] is no note
    body = _NOTE.sub(r"\n\n(Note \1) ", body)
    marked = _NOTE_MARK.sub(lambda mark: f" (note {mark[1]})" if mark[1] in labels else mark[0], body)
    soup = soup_of(reader.render(marked))
    headings = (soup.find(f"h{level}") for level in range(1, 7))
    first = next((heading.get_text() for heading in headings if heading is not None), "")
    return Document(
        title=_name(front.get("title")) or first or file.stem,
        kind="markdown",
        blocks=tuple(blocks_of(soup)),
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
    return "" if value is None or isinstance(value, list | dict) else one_line(str(value))


def _names(value: object) -> list[str]:
    return [name for name in map(_name, value if isinstance(value, list) else [value]) if name]


PARSER = Parser(
    kind="markdown",
    suffixes=_SUFFIXES,
    priority=3,
    recognises=lambda file: file.ends_with(_SUFFIXES) and file.text is not None,
    parse=_parse,
)

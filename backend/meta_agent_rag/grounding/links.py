"""Removes what a page would load or follow: images, HTML elements, and addresses that occur in no passage.

An address that a model makes up may leak what it has read to an attacker who prompted it.
"""

import re
from collections.abc import Callable, Sequence
from html import unescape

from .marks import without

_OF = r"[^\s<>\"'`\[\]()*|\u2018\u2019\u201c\u201d\u00ab\u00bb\u2013\u2014\u3001\u3002\uff0c\uff1b]"
_ADDRESS = re.compile(
    rf"(?:https?|ftp|file)://{_OF}+|(?<![\w/])(?:www\.{_OF}+|//(?=[\w.-]+\.\w){_OF}+|javascript:{_OF}+"
    rf"|data:[\w.+-]+/{_OF}+|mailto:{_OF}+@{_OF}+)",
    re.IGNORECASE,
)
_ELEMENT = re.compile(r"<[a-zA-Z/!?][^<>]*>")
_PICTURE = re.compile(r"!(?=\[(?!\d+(?:\s*[,;\u2013-]\s*\d+)*\](?!\())|(?:\[\d[^\]]*\]\())")
_TARGET = re.compile(r"(?<=\])\(\s*<?((?:[^\s()<>]|\([^\s()]*\))*)[^()\n]*\)")
_DEFINITION = re.compile(r"^[ \t>*+-]*\[[^\]\n]+\]:[ \t]*(\S+)[^\n]*$", re.MULTILINE)
_LIKE_AN_ADDRESS = re.compile(r"[:/.#\\]")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_BROKEN = {"](": "] (", "]:": "] :", "![": "[", "<": "< "}
"""What links and elements begin with, and how they begin none."""
_AFTER = "_.,;:!?~"
"""Characters that end a sentence or an emphasis, and not an address."""


def without_links(text: str, sources: Sequence[str]) -> str:
    """The text without images, HTML elements, and URLs that occur in none of the sources.

    The label of a removed link is kept, in its brackets. What would still be a link in Markdown, in a disguise or half
    finished, is taken apart.

    >>> without_links("See [the list](https://evil.example/?q=4711), on https://a.example/b.", ["At https://a.example/b"])
    'See [the list], on https://a.example/b.'
    """

    def held(part: str) -> bool:
        return bool(part) and any(part in source for source in sources)

    def kept(match: re.Match[str]) -> str:
        return match[0] if held(match[1]) or not _LIKE_AN_ADDRESS.search(match[1]) else ""

    before = ""
    while text != before:  # a removal may join what was separate
        before = text
        text = _PICTURE.sub("", _DEFINITION.sub(kept, _TARGET.sub(kept, text)))
        text = _without_foreign(_ADDRESS, _without_foreign(_ELEMENT, text, held), held)
    if not _follows(text, held):
        return text
    shown = _ESCAPED.sub(r"\1", unescape(text))
    for sign, broken in _BROKEN.items():
        shown = shown.replace(sign, broken)
    return _without_foreign(_ADDRESS, shown, held)


def _without_foreign(pattern: re.Pattern[str], text: str, held: Callable[[str], bool]) -> str:
    found = ((match.start(), match.start() + len(match[0].rstrip(_AFTER))) for match in pattern.finditer(text))
    return without(text, [(start, end) for start, end in found if not held(text[start:end])])


def _follows(text: str, held: Callable[[str], bool]) -> bool:
    """Whether a page would still load something, or follow an address of no source, or hides one in references."""
    from markdown_it import MarkdownIt

    shown = unescape(text)
    hidden = [match[0].rstrip(_AFTER) for match in _ADDRESS.finditer(_ESCAPED.sub(r"\1", shown))]
    if shown != text and not all(map(held, hidden)):
        return True
    blocks = MarkdownIt("commonmark").parse(text)
    for token in (part for block in blocks for part in (block, *(block.children or ()))):
        if token.type == "image" or (token.type.startswith("html") and not held(token.content)):
            return True
        address = str(token.attrGet("href") or "")
        if _LIKE_AN_ADDRESS.search(address) and not held(address):
            return True
    return re.search(r"<(?=[a-zA-Z/!?][^<>]*(?:<|$))", text) is not None

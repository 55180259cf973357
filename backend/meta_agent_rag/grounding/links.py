"""Removes what a page would load or follow: images, HTML elements, and addresses that occur in no passage.

An address that a model makes up may leak what it has read to an attacker who prompted it.
"""

import re
from collections.abc import Callable, Sequence

from .marks import without

_OF = "[^\\s<>\"'`\\[\\]()*|\u2018\u2019\u201c\u201d\u00ab\u00bb\u2013\u2014\u3001\u3002\uff0c\uff1b]"
_BARE = re.compile(
    rf"(?:https?|ftp|file)://{_OF}+"
    rf"|(?<![\w/])(?:www\.{_OF}+|//(?=[\w.-]+\.\w){_OF}+|javascript:{_OF}+|data:[\w.+-]+/{_OF}+|mailto:{_OF}+@{_OF}+)",
    re.IGNORECASE,
)
_AFTER = "_.,;:!?~"
"""Characters that end a sentence or an emphasis, and not an address."""
_ELEMENT = re.compile(r"<[a-zA-Z/!?][^<>]*>")
_UNFINISHED = re.compile(r"<(?=[a-zA-Z/!?][^<>]*(?:<|$))")
"""Constructs that the page around an answer could complete."""
_PICTURE = re.compile(r"!(?=\[(?!\d+(?:\s*[,;\u2013-]\s*\d+)*\](?!\())|(?:\[\d[^\]]*\]\())")
_TARGET = re.compile(r"\]\(\s*<?([^()\s<>]*[:/.#][^()\s<>]*)>?[^()]*\)")
_DEFINITION = re.compile(r"^[ \t]*\[[^\]\n]+\]:[ \t]*<?(\S+?)>?(?:[ \t].*)?$", re.MULTILINE)
_OVER_TWO_LINES = re.compile(
    r"^([ \t]*\[[^\]\n]+\]):(?=[ \t]*\n[ \t]*<?(\S*[:/.#]\S*?)>?(?:[ \t]*$|[ \t]+[\"'(]))", re.MULTILINE
)
"""A definition whose address is on the next line, which could also be a sentence of one word."""


def without_links(text: str, sources: Sequence[str]) -> str:
    """The text without images, HTML elements, and URLs that occur in none of the sources.

    The label of a removed link is kept, in its brackets.

    >>> without_links("See [the list](https://evil.example/?q=4711), on https://a.example/b.", ["At https://a.example/b"])
    'See [the list], on https://a.example/b.'
    """

    def held(part: str) -> bool:
        return bool(part) and any(part in source for source in sources)

    before = ""
    while text != before:  # a removal may join what was separate
        before = text
        text = _UNFINISHED.sub("< ", _cut(text, _ELEMENT, held))
        text = _PICTURE.sub("", text)
        text = _TARGET.sub(lambda link: link[0] if held(link[1]) else "]", text)
        text = _DEFINITION.sub(lambda line: line[0] if held(line[1]) else "", text)
        text = _OVER_TWO_LINES.sub(lambda label: label[0] if held(label[2]) else f"{label[1]} :", text)
        text = _cut(text, _BARE, held)
    return text


def _cut(text: str, pattern: re.Pattern[str], held: Callable[[str], bool]) -> str:
    found = [(match.start(), match.start() + len(match[0].rstrip(_AFTER))) for match in pattern.finditer(text)]
    return without(text, [(start, end) for start, end in found if not held(text[start:end])])

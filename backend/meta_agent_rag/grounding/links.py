"""Removes what a page would load or follow: images, HTML elements, and addresses that occur in no passage.

An address that a model makes up may leak what it has read to an attacker who prompted it. Addresses are compared as a
page shows them, without character references (`&#47;`) and backslash escapes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape

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
_ANY_PICTURE = re.compile(r"!(?=\[)")
"""If the text defines labels, `![1]` may be a picture too."""
_ENCODED = re.compile(r"&(?:#\d{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[a-zA-Z][a-zA-Z0-9]{1,31};)|\\([!-/:-@\[-`{-~])")
_LIKE_AN_ADDRESS = re.compile(r"[:/.#\\]")
_PLAIN = r"[^\x00-\x20\x7f]"
_ANGLED = r"<((?:\\.|[^<>\n\r\\])*)>"
_IN_ANGLES = re.compile(rf"\s*{_ANGLED}")
_BLANK = re.compile(r"[\x00-\x20\x7f]")
_BRACKETS = re.compile(r"\\[^\n\r]|[()]|\n[ \t]*\n")
_DEEPEST = 32
"""Brackets in brackets that Markdown allows in an address."""
_BLOCK = r"(?:^|(?<=\r))[ \t]*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]*)*"
_LABEL = r"\[(?:\\[\s\S]|[^\\\[\]])+\]"
_END = r"(?=[\n\r]|\Z)"
_DEFINITION = re.compile(rf"{_BLOCK}{_LABEL}:[ \t]*(?:{_ANGLED}|({_PLAIN}+))(?:[ \t][^\n\r]*)?{_END}", re.MULTILINE)
_OVER_TWO_LINES = re.compile(
    rf"({_BLOCK}{_LABEL}):(?=[ \t]*(?:\r\n?|\n){_BLOCK}(?:{_ANGLED}|({_PLAIN}+))(?:[ \t]*{_END}|[ \t]+[\"'(]))",
    re.MULTILINE,
)
"""A definition whose address is on the next line, which could also be a sentence of one word."""


def without_links(text: str, sources: Sequence[str]) -> str:
    """The text without images, HTML elements, and URLs that occur in none of the sources.

    The label of a removed link is kept, in its brackets.

    >>> without_links("See [the list](https://evil.example/?q=4711), on https://a.example/b.", ["At https://a.example/b"])
    'See [the list], on https://a.example/b.'
    """
    known = [form for source in sources for form in dict.fromkeys((source, _decoded(source)[0]))]

    def held(part: str) -> bool:
        return bool(part) and any(part in source for source in known)

    def foreign(address: str) -> bool:
        shown = _decoded(address)[0]
        return _LIKE_AN_ADDRESS.search(shown) is not None and not held(shown)

    before = ""
    while text != before:  # a removal may join what was separate
        before = text
        text = _UNFINISHED.sub("< ", without(text, _found(_ELEMENT, text, held)))
        defined = _DEFINITION.search(text) or _OVER_TWO_LINES.search(text)
        text = (_ANY_PICTURE if defined else _PICTURE).sub("", text)
        text = "".join(_without_targets(text, foreign))
        text = _DEFINITION.sub(lambda line: "" if foreign(line[1] or line[2] or "") else line[0], text)
        text = _OVER_TWO_LINES.sub(lambda line: f"{line[1]} :" if foreign(line[2] or line[3] or "") else line[0], text)
        shown, origins = _decoded(text)
        text = without(text, [(origins[start], origins[end]) for start, end in _found(_BARE, shown, held)])
    return text


def _found(pattern: re.Pattern[str], text: str, held: Callable[[str], bool]) -> list[tuple[int, int]]:
    """The stretches that match and occur in no source."""
    found = [(match.start(), match.start() + len(match[0].rstrip(_AFTER))) for match in pattern.finditer(text)]
    return [(start, end) for start, end in found if not held(text[start:end])]


def _without_targets(text: str, foreign: Callable[[str], bool]) -> Iterator[str]:
    """The text in parts, links reduced to their labels if their address is foreign."""
    position = 0
    for match in re.finditer(r"\]\(", text):
        start = match.end()
        if start < position:
            continue
        angled = _IN_ANGLES.match(text, start)
        end = _closing(text, angled.end() if angled else start)
        address = angled[1] if angled else _BLANK.split(text[start:end].lstrip(), maxsplit=1)[0]
        if foreign(address):
            yield text[position : start - 1]
            position = start if end is None else end + 1
    yield text[position:]


def _closing(text: str, start: int) -> int | None:
    """The place of the bracket that closes an open one in the same paragraph."""
    depth = 1
    for match in _BRACKETS.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.start()
        if match[0].startswith("\n") or depth > _DEEPEST:
            break
    return None


def _decoded(text: str) -> tuple[str, Sequence[int]]:
    """The text as a page shows it, and for each of its characters the place that it comes from."""
    if "&" not in text and "\\" not in text:
        return text, range(len(text) + 1)
    shown: list[str] = []
    origins: list[int] = []
    position = 0
    for match in _ENCODED.finditer(text):
        plain = match[1] or unescape(match[0])
        if plain != match[0]:
            shown += [text[position : match.start()], plain]
            origins += [*range(position, match.start()), *[match.start()] * len(plain)]
            position = match.end()
    return "".join([*shown, text[position:]]), [*origins, *range(position, len(text) + 1)]

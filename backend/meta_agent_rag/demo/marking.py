"""Texts of documents and models as HTML: escaped, with quotes and differences marked."""

import difflib
import re
from collections.abc import Iterable, Sequence
from html import escape

from ..grounding.quotes import place

_WORDS = re.compile(r"\S+\s*")
_CITATION = re.compile(r"\[(\d{1,3})\]")


def with_quotes(text: str, quotes: Sequence[str]) -> str:
    """A passage as HTML with its quotes marked; overlapping quotes share one mark."""
    spans = sorted(span for quote in quotes if (span := place(quote, text)) is not None)
    parts: list[str] = []
    at = 0
    for start, end in _joined(spans):
        parts += [escape(text[at:start]), "<mark>", escape(text[start:end]), "</mark>"]
        at = end
    return "".join((*parts, escape(text[at:])))


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def with_citations(text: str) -> str:
    """An answer as HTML, its citations `[n]` highlighted."""
    return _CITATION.sub(r'<span class="m-cite">\1</span>', escape(text))


def difference(before: str, after: str) -> str:
    """The later text as HTML, with inserted and deleted words marked, in order."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    parts: list[str] = []
    for what, i, j, k, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = escape("".join(old[i:j])), escape("".join(new[k:n]))
        if what == "equal":
            parts.append(come)
            continue
        parts.append(f"<del>{gone.strip()}</del> " if gone else "")
        parts.append(f"<ins>{come.strip()}</ins> " if come else "")
    return "".join(parts).strip()

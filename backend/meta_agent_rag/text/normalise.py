"""Text brought to a form in which what a reader sees as the same is the same."""

import re
import unicodedata

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = re.compile(r"[^\w\s]")
_TYPOGRAPHIC = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u00a0": " "}
)


def normalised(text: str) -> str:
    """Lower case, without punctuation and articles, single spaces; articles alone are kept (blood group A)."""
    plain = _PUNCTUATION.sub(" ", _plain(text).lower())
    return " ".join(_ARTICLES.sub(" ", plain).split() or plain.split())


def tokens(text: str) -> frozenset[str]:
    """The set of normalised words of a text."""
    return frozenset(normalised(text).split())


def as_quoted(text: str) -> str:
    """White space and typographic quotes and dashes made plain; words and case untouched."""
    return " ".join(_plain(text).split())


def _plain(text: str) -> str:
    if text.isascii():  # as most texts are: there is nothing to do
        return text
    return unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHIC)

"""Names of things, compared as a reader would: the keys by which a mention finds a title."""

import html
import re
import unicodedata
from collections.abc import Container
from functools import lru_cache
from typing import NamedTuple

LONGEST_NAME = 8
"""Words; a longer title is found by its words, not by its name."""

_WORD = re.compile(r"[^\W_]+")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")


class NameKey(NamedTuple):
    """A key of a title; `whole` unless a qualifier in brackets was left out of it."""

    key: str
    whole: bool


def words(text: str) -> list[str]:
    """The words of a text without case, accents and punctuation; `&` is the word "and".

    >>> words("Béla Bartók &amp; Sons")
    ['bela', 'bartok', 'and', 'sons']
    """
    return _WORD.findall(_folded(text))


@lru_cache(maxsize=8192)
def plain(text: str) -> str:
    """The words of a text between single blanks, one at either end, so that a word or name is found as a part."""
    return f" {' '.join(words(text))} "


def name_keys(title: str) -> tuple[NameKey, ...]:
    """The keys of a title: as it stands, and without a qualifier in brackets at its end.

    >>> name_keys("Crash (2004 film)")
    (NameKey(key='crash 2004 film', whole=True), NameKey(key='crash', whole=False))
    """
    whole, bare = _key(title), _key(unqualified(title))
    keys = (NameKey(whole, whole=True), NameKey(bare, whole=False))
    return tuple(key for key in keys[: 1 if bare == whole else 2] if key.key)


def unqualified(title: str) -> str:
    """The title without a qualifier in brackets at its end."""
    return _QUALIFIER.sub("", title)


def possible_names(text: str) -> dict[str, None]:
    """Every run of words in a text that could be a name, in the order of the text."""
    found, capitals = _capitalised(text)
    names: dict[str, None] = {}
    for start in capitals:
        name = found[start]
        names[name] = None
        for word in found[start + 1 : start + LONGEST_NAME]:
            name = f"{name} {word}"
            names[name] = None
    return names


def mentioned(text: str, names: Container[str]) -> list[str]:
    """Those of `names` that occur in a text, in its order; of overlapping ones the first and longest."""
    found, capitals = _capitalised(text)
    hits: dict[str, None] = {}
    after = 0
    for start in capitals:
        if start < after:
            continue
        for end in range(min(start + LONGEST_NAME, len(found)), start, -1):
            if (name := " ".join(found[start:end])) in names:
                hits[name] = None
                after = end
                break
    return list(hits)


@lru_cache(maxsize=2048)
def _capitalised(text: str) -> tuple[list[str], list[int]]:
    """The words of a text, and where a name can begin: at a capital letter or digit, or anywhere if there is none."""
    found, folded = _WORD.findall(_unescaped(text)), words(text)
    if len(found) != len(folded):  # a letter falls apart when it is folded, as the half in "2½" does
        folded = [_key(word) for word in found]
    capitals = [place for place, word in enumerate(found) if not word[0].islower()]
    return folded, capitals or list(range(len(found)))


def _key(title: str) -> str:
    return " ".join(words(title))


def _unescaped(text: str) -> str:
    return html.unescape(text).replace("&", " and ") if "&" in text else text


def _folded(text: str) -> str:
    text = _unescaped(text)
    if text.isascii():
        return text.lower()
    return "".join(char for char in unicodedata.normalize("NFKD", text) if unicodedata.category(char) != "Mn").lower()

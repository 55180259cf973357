"""The words of a text in any script, segmented by ICU with Unicode's rules and dictionaries."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from .language import language_of

_INFLECTED_BY_KANA = range(0x3040, 0x30A0)
"""Hiragana: a token of only hiragana is a particle or an ending."""


@dataclass(frozen=True, kw_only=True)
class Token:
    """A word at `text[start:end]`: as written, and its lower-case stem for comparison.

    `is_particle` marks a Japanese token of only hiragana, which carries grammar rather than meaning.
    """

    written: str
    stem: str
    start: int
    end: int
    is_particle: bool = False


@lru_cache(maxsize=1024)
def tokens(text: str, language: str = "") -> tuple[Token, ...]:
    """The words and numbers of a text in order, without punctuation.

    >>> [token.written for token in tokens("甲板のクレーンは4.5トン", "ja")]
    ['甲板', 'の', 'クレーン', 'は', '4.5', 'トン']
    >>> [token.stem for token in tokens("She designed bridges.", "en")]
    ['she', 'design', 'bridg']
    """
    return tuple(_tokens(text, language or language_of(text)))


def _tokens(text: str, language: str) -> Iterator[Token]:
    from icu4py.breakers import WordBreaker

    start = 0
    for segment in WordBreaker(text, language):
        written = str(segment)
        end = start + len(written)
        if any(character.isalnum() for character in written):
            yield Token(
                written=written,
                stem=stem(written, language),
                start=start,
                end=end,
                is_particle=all(ord(character) in _INFLECTED_BY_KANA for character in written),
            )
        start = end


@lru_cache(maxsize=16384)
def stem(word: str, language: str) -> str:
    """The lower-case stem of a word, by Snowball's rules if the language has any."""
    plain = unicodedata.normalize("NFKC", word).lower().removesuffix("'s").removesuffix("\u2019s")
    stemmer = _stemmer(language)
    return str(stemmer.stemWord(plain)) if stemmer is not None else plain


@cache
def _stemmer(language: str) -> Any:
    import snowballstemmer
    from babel import Locale

    name = (Locale.parse(language).english_name or "").lower()
    return snowballstemmer.stemmer(name) if name in snowballstemmer.algorithms() else None

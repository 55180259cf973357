"""The content words, numbers and names of a sentence, and the part of a text that shares most words with it."""

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import cache, lru_cache

from ..text.normalise import as_quoted, normalised
from ..text.sentences import sentences
from ..text.words import stop_words

_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")
_WRITTEN_WORD = re.compile(r"(?<!\w)[^\W\d_]\w*(?:['.][^\W\d_]\w*)*")
_ENDINGS = ("ings", "ing", "ies", "ed", "es", "ly", "s", "e", "y")
_SHORTEST_STEM = 3
_NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_WIDEST_WINDOW = 3
_SAYS_NOTHING = frozenset({"yes"})


@dataclass(frozen=True, kw_only=True)
class Window:
    """Consecutive sentences of a text, `text[start:end]`, and the wanted words that they contain."""

    start: int
    end: int
    held: frozenset[str]


def content_words(text: str) -> frozenset[str]:
    """The words of a text without function words, in lower case and without common English endings.

    >>> sorted(content_words("She designed two bridges."))
    ['2', 'bridg', 'design']
    """
    return frozenset(_stem(word) for word in normalised(text).split() if word not in _function_words())


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text in digits: `1,912` is 1912, `05` is 5, `3.50` is 3.5, `three` is 3; "one" is a pronoun.

    >>> sorted(numbers("In 1912 one sold 1,200 of three kinds, 19th in rank."))
    ['1200', '19', '1912', '3']
    """
    plain = as_quoted(text).lower()
    spelled = {_in_digits()[word] for word in normalised(plain).split() if word in _in_digits() and word != "one"}
    return frozenset(spelled.union(map(_canonical, _NUMBER.findall(plain))))


def names(sentence: str) -> frozenset[str]:
    """The capitalised words of a sentence except its first, in lower case; no function words, no single letters.

    >>> sorted(names("Later Mira Holt's film opened in Oslo."))
    ['holt', 'mira', 'oslo']
    """
    found = [match.group() for match in _WRITTEN_WORD.finditer(as_quoted(sentence))]
    capitalised = [word.removesuffix("'s") for word in found[1:] if word[0].isupper()]
    words = {part for word in capitalised for part in normalised(word).split() if len(part) > 1}
    return frozenset(words) - _function_words() - set(_in_digits())


def best_window(wanted: Set[str], text: str) -> Window:
    """The one to three consecutive sentences with most of the wanted words; on ties the shortest, then the first."""
    parts = _parts(text)
    best = Window(start=0, end=len(text.rstrip()), held=frozenset())
    for size in range(1, _WIDEST_WINDOW + 1):
        for first in range(len(parts) - size + 1):
            group = parts[first : first + size]
            held = frozenset().union(*(words for _, _, words in group)) & wanted
            if len(held) > len(best.held):
                best = Window(start=group[0][0], end=group[-1][1], held=held)
    return best


@lru_cache(maxsize=256)
def _parts(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Start, end and content words of each non-blank sentence."""
    parts: list[tuple[int, int, frozenset[str]]] = []
    position = 0
    for sentence in sentences(text):
        start = position + len(sentence) - len(sentence.lstrip())
        end = position + len(sentence.rstrip())
        position += len(sentence)
        if start < end:
            parts.append((start, end, content_words(sentence)))
    return tuple(parts)


def _stem(word: str) -> str:
    if word in _in_digits():
        return _in_digits()[word]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM and word.isalpha():
            return word.removesuffix(ending)
    return word


def _canonical(number: str) -> str:
    whole, _, part = number.replace(",", "").partition(".")
    decimals = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{decimals}" if decimals else "")


@cache
def _function_words() -> frozenset[str]:
    return frozenset(stop_words()) | _SAYS_NOTHING


@cache
def _in_digits() -> dict[str, str]:
    return {word: str(number) for number, word in enumerate(_NUMBER_WORDS)}

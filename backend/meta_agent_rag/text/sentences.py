"""Splits a text into sentences."""

import re
import warnings
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

_AT_ONCE = 5_000
"""The most characters passed to pysbd, whose time grows faster than linearly."""
_SENTENCE_END = re.compile(r"[.!?]\s+")
_NUMBER = re.compile(r"\d{1,4}\.\s+(?=\S)")
_NUMBERED = re.compile(
    r"\b(?:numbers?|no|nr|num\u00e9ro|n\u00famero|numero|nummer|room|gate|page|figure|table|part|section|chapter|volume|level"
    r"|line|route|bus|track|floor|class|phase|article|paragraph|lot|flat|house|unit|zone|door|building|block|hall|model"
    r"|type|size|round|platform|version)\s+$",
    re.IGNORECASE,
)
"""Words before a number that do not make it an item of a list."""
_FULL_WIDTH_END = re.compile(r"[\u3002\uff01\uff1f]+[\u300d\u300f\uff09\u201d]*\s*")
"""A sentence end in Chinese or Japanese, which needs no space after it, with closing brackets and quotes."""
_WHOLE = re.compile(rf"{_FULL_WIDTH_END.pattern}\Z")


def sentences(text: str, language: str = "en") -> list[str]:
    """Sentences of a text with the white space that follows them; joined, they equal the text.

    A sentence ends with its line at the latest. One of more than 5,000 characters may be split.
    """
    return [sentence for stretch in _stretches(text) for sentence in _divided(stretch, language)]


@lru_cache(maxsize=2048)  # many questions find the same passages
def _divided(stretch: str, language: str) -> tuple[str, ...]:
    """Cached, because the checks of one answer split it several times, at several milliseconds each."""
    ends = [match.end() for match in _FULL_WIDTH_END.finditer(stretch) if match.end() < len(stretch)]
    if ends:
        parts = [stretch[start:end] for start, end in zip([0, *ends], [*ends, len(stretch)], strict=True)]
        return tuple(sentence for part in parts for sentence in _divided(part, language))
    if _WHOLE.search(stretch) and not _SENTENCE_END.search(stretch):
        return (stretch,)
    spans = _segmenter(language).segment(stretch)
    starts = [_behind_a_number(stretch, span.start) for span in spans] or [0]
    starts[0] = 0
    return tuple(stretch[start:end] for start, end in zip(starts, [*starts[1:], len(stretch)], strict=True))


def _behind_a_number(text: str, start: int) -> int:
    """The beginning of a sentence, after a number that ends the one before: "by maker number 1. It is lost."."""
    number = _NUMBER.match(text, start)
    return number.end() if number and _NUMBERED.search(text, 0, start) else start


def _stretches(text: str) -> Iterator[str]:
    """The lines of a text; very long ones in parts that end with a sentence, else with a word, if possible."""
    for line in text.splitlines(keepends=True):
        start = 0
        while len(line) - start > _AT_ONCE:
            window = line[start : start + _AT_ONCE]
            ends = [match.end() for match in _SENTENCE_END.finditer(window)]
            cut = ends[-1] if ends else window.rfind(" ") + 1 or _AT_ONCE
            yield window[:cut]
            start += cut
        yield line[start:]


@cache
def _segmenter(language: str) -> Any:
    """pysbd's rules for a language, or for English if it has none; imported on first use."""
    with warnings.catch_warnings():
        # on first compilation its patterns cause warnings on stderr, which would mix with the service's log
        warnings.filterwarnings("ignore", message=".*invalid escape sequence")
        import pysbd
        from pysbd.languages import LANGUAGE_CODES
    return pysbd.Segmenter(language=language if language in LANGUAGE_CODES else "en", clean=False, char_span=True)

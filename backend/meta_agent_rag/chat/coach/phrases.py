"""The words of `phrases.yaml`, and functions that compare a text with them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from string import Template

from ...text.normalise import typed
from ..own_files import folder_in_use, rows_of

_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uff66-\uff9f]")
_JAPANESE = re.compile("[\u3040-\u30ff\uff66-\uff9f]")
_IDEOGRAPH = re.compile("[\u3400-\u9fff]")

Phrases = frozenset[str]
"""Phrases as `plain` returns them."""


@dataclass(frozen=True, kw_only=True)
class CoachWords:
    """All words that the hooks compare a text with; see the comments in the file."""

    safe: Phrases
    surrender: Phrases
    bare: Phrases
    decisive: Phrases
    polite: Phrases
    adverbs: Phrases
    openings: Phrases
    endings: Phrases
    tails: Phrases
    attempts: Phrases
    fillers: Phrases
    mumbles: Phrases
    affirmations: Phrases
    repeats: Phrases
    acknowledgement: Phrases
    verdict_subjects: Phrases
    verdict_endings: Phrases
    verdict_vetoes: Phrases
    negations: Phrases
    rights: Phrases
    praise_fillers: Phrases
    conjunctions: Phrases
    rejections: Phrases
    refusals: Phrases
    rejection_fillers: Phrases
    alternatives: Phrases


def coach_words() -> CoachWords:
    """The words in use, read once."""
    return _words(folder_in_use())


@cache
def _words(folder: Path | None) -> CoachWords:
    rows = rows_of("words", folder)
    verdicts = rows["verdicts"]
    texts = {
        **rows,
        **rows["strong"],
        "verdict_subjects": verdicts["subjects"],
        "verdict_endings": verdicts["endings"],
        "verdict_vetoes": [*verdicts["negations"], *verdicts["vetoes"]],
        "negations": verdicts["negations"],
        "rights": verdicts["rights"],
        "refusals": [*rows["rejections"], *rows["refusals"]],
    }
    return CoachWords(**{field.name: _phrases(texts[field.name]) for field in fields(CoachWords)})


def reason(key: str, **values: object) -> str:
    """The reason of that key, filled with values."""
    text: str = rows_of("words", folder_in_use())["reasons"][key]
    return Template(text.strip()).safe_substitute({name: str(value) for name, value in values.items()})


def without_adverbs(text: str) -> str:
    """A plain text without words that only intensify it."""
    return " ".join(word for word in text.split() if word not in coach_words().adverbs)


def language_of(text: str) -> str:
    """`ja` for a text with kana or only ideographs, else `en`: the languages of the templates."""
    if _JAPANESE.search(text):
        return "ja"
    return "ja" if _IDEOGRAPH.search(text) and not re.search(r"[A-Za-z]", text) else "en"


def is_word_at(text: str, start: int, end: int) -> bool:
    """Is `text[start:end]` made of whole words? In scripts written without blanks, every place is a word boundary."""
    return _is_limit(text, start) and _is_limit(text, end)


def holds(text: str, phrases: Iterable[str]) -> bool:
    """Does a plain text contain one of the phrases, as whole words?"""
    return any(is_word_at(text, place, place + len(one)) for one in phrases for place in _places(text, one))


def beginning_of(text: str, phrases: Iterable[str]) -> int:
    """The length of the longest of the phrases that a plain text begins with, as whole words; 0 for none."""
    fitting = (len(one) for one in phrases if text.startswith(one) and is_word_at(text, 0, len(one)))
    return max(fitting, default=0)


def ending_of(text: str, phrases: Iterable[str]) -> int:
    """The length of the longest of the phrases that a plain text ends with, as whole words; 0 for none."""
    size = len(text)
    fitting = (len(one) for one in phrases if text.endswith(one) and is_word_at(text, size - len(one), size))
    return max(fitting, default=0)


def consists_of(text: str, wanted: Phrases, fillers: Phrases) -> bool:
    """Does a plain text consist of the phrases and fillers alone, with at least one of the phrases?

    >>> consists_of("ok i give up", frozenset({"i give up"}), frozenset({"ok"}))
    True
    """
    known, longest = _together(wanted, fillers)
    # whether a place can be reached, and whether with one of the wanted phrases before it
    reached: list[bool | None] = [None] * (len(text) + 1)
    reached[0] = False
    for start in range(len(text)):
        so_far = reached[start]
        if so_far is None:
            continue
        if text[start] == " ":
            reached[start + 1] = bool(reached[start + 1]) or so_far
            continue
        for end in range(start + 1, min(start + longest, len(text)) + 1):
            piece = text[start:end]
            if piece in known and is_word_at(text, start, end):
                reached[end] = bool(reached[end]) or so_far or piece in wanted
    return bool(reached[-1])


@cache
def _together(wanted: Phrases, fillers: Phrases) -> tuple[Phrases, int]:
    """Phrases and fillers, and the length of the longest."""
    known = wanted | fillers
    return known, max(map(len, known), default=0)


def _is_limit(text: str, place: int) -> bool:
    if place <= 0 or place >= len(text):
        return True
    left, right = text[place - 1], text[place]
    return " " in {left, right} or bool(_UNSPACED.match(left) or _UNSPACED.match(right))


def _places(text: str, phrase: str) -> list[int]:
    places, place = [], text.find(phrase)
    while place >= 0:
        places.append(place)
        place = text.find(phrase, place + 1)
    return places


def _phrases(rows: Sequence[str | Sequence[str]]) -> Phrases:
    texts = (text for row in rows for text in ([row] if isinstance(row, str) else row))
    return frozenset(filter(None, map(typed, texts)))

"""What a question asks for, by its first words, in several languages."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias, get_args

import yaml

Asked: TypeAlias = Literal[
    "person",
    "named",
    "time",
    "spell",
    "long",
    "distance",
    "weight",
    "speed",
    "price",
    "amount",
    "number",
    "age",
    "height",
]
"""`spell` is a period of time, `long` a period or a length; `named` is a place."""


def asked_for(question: str, language: str) -> Asked | None:
    """What the question asks for; `None` if its wording does not say, or asks for several things.

    >>> asked_for("Who built the mill?", "en"), asked_for("Wie lange dauert der Kurs?", "de")
    ('person', 'spell')
    >>> asked_for("Which mill is older?", "en") is None
    True
    """
    plain = " ".join(question.lower().replace("\u2019", "'").split()).lstrip("\u00bf\u00a1\"'( ")
    found = _kind(plain, language)
    joined = map(str, _rows()["joined"].get(language, ()))
    parts = re.split(rf"[\s,;]+(?:{'|'.join(joined) or '$'})\s+", plain)
    return None if any(_kind(part, language) for part in parts[1:]) else found


def _kind(plain: str, language: str) -> Asked | None:
    return next((kind for kind, pattern in _patterns(language) if pattern.search(plain)), None)


@cache
def before_a_place(language: str) -> frozenset[str]:
    """Prepositions that make a name a place."""
    return frozenset(map(str, _rows()["places"].get(language, ())))


@cache
def before_a_date(language: str) -> frozenset[str]:
    """Words that make a date a point in time."""
    return frozenset(map(str, _rows()["times"].get(language, ())))


def is_conditional(text: str, language: str) -> bool:
    """Does the text have a word for a condition?

    >>> is_conditional("until the core reaches 63 °C", "en"), is_conditional("12 °C", "en")
    (True, False)
    """
    return _has(text, "conditions", language)


def is_state(text: str, language: str) -> bool:
    """Does the text have a word that makes a measure a point in time, as in "at 90 °C"?"""
    return _has(text, "states", language)


def _has(text: str, part: str, language: str) -> bool:
    pattern = _words_of(part, language)
    return pattern is not None and pattern.search(text.lower().replace("\u2019", "'")) is not None


@cache
def _words_of(part: str, language: str) -> re.Pattern[str] | None:
    written = [str(word) for word in _rows()[part].get(language, ())]
    either = "|".join(map(re.escape, written))
    edge = "" if language == "ja" else r"\b"
    return re.compile(f"{edge}(?:{either}){edge}") if written else None


@cache
def amounts() -> frozenset[str]:
    """Words for amounts, in every language."""
    return frozenset(map(str, _rows()["amounts"]))


@cache
def year_words() -> frozenset[str]:
    """Words for a year, in every language."""
    return frozenset(map(str, _rows()["years"]))


@cache
def _patterns(language: str) -> tuple[tuple[Asked, re.Pattern[str]], ...]:
    return tuple(_read(language))


def _read(language: str) -> Iterator[tuple[Asked, re.Pattern[str]]]:
    for kind in get_args(Asked):
        for words in _rows()["kinds"].get(kind, {}).get(language, ()):
            yield kind, re.compile(rf"^(?:{words})(?!\w)")
        for words in _rows()["anywhere"].get(kind, {}).get(language, ()):
            yield kind, re.compile(words)


@cache
def _rows() -> Any:
    return yaml.safe_load(files(__package__).joinpath("questions.yaml").read_text(encoding="utf-8"))

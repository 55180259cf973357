"""The words of `words.yaml`, ready for comparing."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import yaml

from ..text.names import words

Phrase: TypeAlias = tuple[str, ...]
"""The words of a phrase, as `text.names.words` gives them."""

Patterns: TypeAlias = tuple[tuple[str, re.Pattern[str]], ...]
"""(kind, pattern over a whole message), in the order of the file."""


@dataclass(frozen=True, kw_only=True)
class Pleasantry:
    """Phrases of one kind; `may_ask` where they may come as a question."""

    kind: str
    phrases: frozenset[Phrase]
    may_ask: bool = False


@dataclass(frozen=True, kw_only=True)
class Words:
    """Everything that the rules of the conversation compare a message with; see the comments of the file."""

    pleasantries: tuple[Pleasantry, ...]
    fillers: frozenset[Phrase]
    courtesies: frozenset[Phrase]
    endings: frozenset[Phrase]
    asking: frozenset[str]
    question_words: frozenset[str]
    about_conversation: Patterns
    off_topic: Patterns
    references: frozenset[str]
    bound: frozenset[str]
    possessive_or_not: frozenset[str]
    existential: frozenset[str]
    comparatives: frozenset[str]
    completions: frozenset[str]
    openings: frozenset[Phrase]
    switches: frozenset[Phrase]
    labels: frozenset[str]

    @property
    def polite(self) -> frozenset[Phrase]:
        """Phrases of pleasantries, and the courtesies: what a message may begin with and does not need."""
        return self.courtesies.union(*(pleasantry.phrases for pleasantry in self.pleasantries))


@cache
def conversation_words() -> Words:
    """The words, read once."""
    rows = yaml.safe_load(files(__package__).joinpath("words.yaml").read_text(encoding="utf-8"))
    return Words(
        pleasantries=tuple(_pleasantry(kind, row) for kind, row in rows["pleasantries"].items()),
        fillers=_phrases(rows["fillers"]),
        courtesies=_phrases(rows["courtesies"]),
        endings=_phrases(rows["endings"]),
        asking=frozenset(rows["asking"]),
        question_words=frozenset(rows["question_words"]),
        about_conversation=_patterns(rows["about_conversation"]),
        off_topic=_patterns(rows["off_topic"]),
        references=frozenset(rows["references"]),
        bound=frozenset(rows["bound"]),
        possessive_or_not=frozenset(rows["possessive_or_not"]),
        existential=frozenset(rows["existential"]),
        comparatives=frozenset(rows["comparatives"]),
        completions=frozenset(rows["completions"]),
        openings=_phrases(rows["openings"]),
        switches=_phrases(rows["switches"]),
        labels=frozenset(rows["labels"]),
    )


def phrase_at(said: Sequence[str], place: int, phrases: frozenset[Phrase]) -> int:
    """How many words the longest of the phrases takes that stands at a place; 0 if none does."""
    longest = min(len(said) - place, _longest(phrases))
    return next((size for size in range(longest, 0, -1) if tuple(said[place : place + size]) in phrases), 0)


def without_courtesy(said: Sequence[str]) -> slice:
    """Where the words stand that are left without polite phrases at either end; everything where nothing is left."""
    known = conversation_words()
    start, end = 0, len(said)
    while start < end and (size := phrase_at(said[:end], start, known.polite)):
        start += size
    while start < end and (size := _ending(said[start:end], known.endings)):
        end -= size
    return slice(start, end) if start < end else slice(0, len(said))


def _ending(said: Sequence[str], phrases: frozenset[Phrase]) -> int:
    longest = min(len(said), _longest(phrases))
    return next((size for size in range(longest, 0, -1) if tuple(said[len(said) - size :]) in phrases), 0)


@cache
def _longest(phrases: frozenset[Phrase]) -> int:
    return max((len(phrase) for phrase in phrases), default=0)


def _phrases(texts: Sequence[str]) -> frozenset[Phrase]:
    return frozenset(tuple(words(text)) for text in texts)


def _pleasantry(kind: str, row: Mapping[str, Any]) -> Pleasantry:
    return Pleasantry(kind=kind, phrases=_phrases(row["phrases"]), may_ask=row.get("may_ask", False))


def _patterns(rows: Mapping[str, Mapping[str, Any]]) -> Patterns:
    return tuple(
        (kind, re.compile(f"{row.get('before', '')}(?:{text}){row.get('after', '')}"))
        for kind, row in rows.items()
        for text in row["patterns"]
    )

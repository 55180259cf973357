"""The words of `words.yaml`, prepared for comparison."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import yaml

from ..text.names import words

Phrase: TypeAlias = tuple[str, ...]
"""The words of a phrase, as `text.names.words` returns them."""

Patterns: TypeAlias = tuple[tuple[str, re.Pattern[str]], ...]
"""(kind, pattern over a whole message), in file order."""


@dataclass(frozen=True, kw_only=True)
class Pleasantry:
    """Phrases of one kind and language; `may_ask` if they may be phrased as a question.

    `reply` is the response to them, empty if it is in `phrases.yaml`.
    """

    kind: str
    phrases: frozenset[Phrase]
    may_ask: bool = False
    reply: str = ""


@dataclass(frozen=True, kw_only=True)
class Words:
    """All words that the rules of the conversation compare a message with; see the comments in the file."""

    pleasantries: tuple[Pleasantry, ...]
    emoji: tuple[tuple[str, str], ...]
    answers: frozenset[Phrase]
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
    restating: re.Pattern[str]

    @property
    def polite(self) -> frozenset[Phrase]:
        """Phrases of pleasantries, and courtesies: optional at the beginning of a message."""
        return self.courtesies.union(*(pleasantry.phrases for pleasantry in self.pleasantries))


@cache
def conversation_words() -> Words:
    """The words, read once."""
    rows, abroad = _rows("words.yaml"), _rows("small_talk.yaml")
    return Words(
        pleasantries=tuple(_pleasantries(rows["pleasantries"], abroad)),
        emoji=tuple(rows["emoji"].items()),
        answers=_phrases(rows["answers"]),
        fillers=_phrases(rows["fillers"]) | _phrases(abroad["fillers"]),
        courtesies=_phrases(rows["courtesies"]) | _phrases(abroad["courtesies"]),
        endings=_phrases(rows["endings"]) | _phrases(abroad["courtesies"]),
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
        restating=re.compile("|".join(f"(?:{text})" for text in rows["restating"])),
    )


def _pleasantries(rows: Mapping[str, Any], abroad: Mapping[str, Any]) -> Iterator[Pleasantry]:
    """The English ones by kind, each followed by those of other languages."""
    languages = [kinds for code, kinds in abroad.items() if code not in {"fillers", "courtesies"}]
    for kind, row in rows.items():
        may_ask = row.get("may_ask", False)
        yield Pleasantry(kind=kind, phrases=_phrases(row["phrases"]), may_ask=may_ask)
        for other in (kinds[kind] for kinds in languages if kind in kinds):
            yield Pleasantry(kind=kind, phrases=_phrases(other["phrases"]), may_ask=may_ask, reply=other["reply"])


def _rows(name: str) -> Any:
    return yaml.safe_load(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def phrase_at(said: Sequence[str], place: int, phrases: frozenset[Phrase]) -> int:
    """The number of words in the longest phrase that starts at a place; 0 if none does."""
    longest = min(len(said) - place, _longest(phrases))
    return next((size for size in range(longest, 0, -1) if tuple(said[place : place + size]) in phrases), 0)


def without_courtesy(said: Sequence[str]) -> slice:
    """The range of words left after removing polite phrases at both ends; the whole range if nothing would be left."""
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


def _patterns(rows: Mapping[str, Mapping[str, Any]]) -> Patterns:
    return tuple(
        (kind, re.compile(f"{row.get('before', '')}(?:{text}){row.get('after', '')}"))
        for kind, row in rows.items()
        for text in row["patterns"]
    )

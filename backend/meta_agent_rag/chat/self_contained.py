"""Decides, by rules over words, whether a question can be understood without the preceding conversation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..text.names import words
from ..text.words import stop_words
from .words import Words, conversation_words, phrase_at, without_courtesy

_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r'["\u201c\u201d\u00ab]([^"\u201c\u201d\u00ab\u00bb]+)["\u201d\u00bb]')
_SENTENCE_END = ".!?:\n"
_LEAST_BESIDE_NAMES = 2


@dataclass(frozen=True, kw_only=True)
class _Question:
    """The lower-case words of a question, and which of them are part of a name."""

    said: tuple[str, ...]
    named: tuple[bool, ...]

    def part(self, of: slice) -> "_Question":
        return _Question(said=self.said[of], named=self.named[of])

    def follows_a_name(self, place: int) -> bool:
        return any(self.named[:place])


def stands_alone(question: str) -> bool:
    """Can the question be understood on its own, so that nothing from an earlier topic may be added to it?

    Only if this is certain: it mentions a name, contains no word that refers back, and is complete.
    After words that announce a new topic ("by the way") it need not mention a name.

    >>> stands_alone("Who designed the Pennant Bridge?"), stands_alone("And who designed it?")
    (True, False)
    >>> stands_alone("Who designed the bridge?"), stands_alone("By the way, what is a sextant?")
    (False, True)
    """
    known = conversation_words()
    asked = _read(question)
    asked = asked.part(without_courtesy(asked.said))
    switched = phrase_at(asked.said, 0, known.switches)
    asked = asked.part(slice(switched, None))
    if not asked.said or phrase_at(asked.said, 0, known.openings):
        return False
    if any(_points_back(asked, place, known) for place in range(len(asked.said))):
        return False
    beside_names = asked.named.count(False)
    return beside_names >= _LEAST_BESIDE_NAMES and (any(asked.named) or bool(switched))


def pointing_words() -> frozenset[str]:
    """Words that a rewrite may replace with what they refer to."""
    known = conversation_words()
    openings = frozenset(word for opening in (*known.openings, *known.switches) for word in opening)
    return known.references | known.bound | known.possessive_or_not | openings | {"that", "there"}


def _points_back(asked: _Question, place: int, known: Words) -> bool:
    word = asked.said[place]
    if asked.named[place]:
        return False
    if word in known.possessive_or_not | known.bound:
        return not (asked.follows_a_name(place) and (word in known.bound or _owns(asked, place)))
    if word in known.comparatives:
        return not known.completions & set(asked.said)
    if word == "there":
        beside = {*asked.said[place + 1 : place + 2], *asked.said[max(place - 1, 0) : place]}
        return not known.existential & beside
    return word in known.references or (word == "that" and not _begins_a_clause(asked, place))


def _owns(asked: _Question, place: int) -> bool:
    """Does a word follow that can be the possession ("her notes")?"""
    following = asked.said[place + 1 : place + 2]
    return bool(following) and following[0] not in stop_words()


def _begins_a_clause(asked: _Question, place: int) -> bool:
    """Is this "that" a relative pronoun: after a noun and before a name, an article, an auxiliary or similar?"""
    if place == 0 or place + 1 == len(asked.said) or asked.said[place - 1] in stop_words():
        return False
    return asked.named[place + 1] or asked.said[place + 1] in stop_words()


def _read(question: str) -> _Question:
    quoted = [match.span(1) for match in _QUOTED.finditer(question)]
    shouted = question.isupper()
    said: list[str] = []
    named: list[bool] = []
    first_capitals: list[int] = []
    for match in _WORD.finditer(question):
        capital = match[0][0].isupper() and not shouted
        for word in words(match[0]):
            if capital and _begins_a_sentence(question, match.start()):
                first_capitals.append(len(said))
                capital = False
            in_quotes = any(start <= match.start() < end for start, end in quoted)
            said.append(word)
            named.append(in_quotes or (capital and word not in stop_words()))
    return _Question(said=tuple(said), named=_with_first_words(said, named, first_capitals))


def _with_first_words(said: Sequence[str], named: list[bool], places: Sequence[int]) -> tuple[bool, ...]:
    """A capital at the beginning of a sentence belongs to the name directly after it ("Mira Holt")."""
    for place in places:
        if said[place] not in stop_words() and named[place + 1 : place + 2] == [True]:
            named[place] = True
    return tuple(named)


def _begins_a_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \t\"'\u201c\u2018(")
    return not before or before[-1] in _SENTENCE_END

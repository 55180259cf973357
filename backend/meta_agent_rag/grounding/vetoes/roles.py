"""A claim that swaps two parties of one action."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from ...text.figures.lexicon import unit_names
from ..support.grounds import Grounds
from ..support.statement import FREE_ORDER, Item, Statement
from . import Veto

_SUBJECT = frozenset({"は", "が"})
_OBJECT = frozenset({"を", "に", "へ"})
_AGENT = ("er", "or")
_BY_AGENT = (
    r"\bby\s+(?:(?:the|an?)\s+)?(?:[A-Z][\w-]*\s+)?{noun}\b"
    r"|\b{noun}\s+(?:[A-Z][\w.-]*\s+){{0,3}}[A-Z][\w.-]*['\u2019]s?\b"
)
_PERIODS = frozenset({"year", "month", "week", "day", "hour", "minute"})
_BESIDE_THE_POINT = frozenset({"in", "at", "on", "during", "since", "until", "im", "am", "seit"})


def _fault(grounds: Grounds) -> str | None:
    if not grounds.same_language:
        return None
    spoken = (sentence for sentence in grounds.sentences if not sentence.label)
    return next((found for sentence in spoken for found in _changed(grounds.claim, sentence)), None)


def _changed(claim: Statement, sentence: Statement) -> Iterator[str]:
    if claim.language in {"ja", "ko"}:
        yield from _by_particles(claim, sentence)
        return
    for place, pivot in enumerate(claim.items):
        there = next((index for index, item in enumerate(sentence.items) if pivot.same_as(item)), None)
        changing = claim.grammar.symmetric | claim.grammar.telling
        if pivot.is_value or there is None or not changing.isdisjoint({pivot.stem, pivot.written.lower()}):
            continue
        ours, theirs = _sides(claim, place), _sides(sentence, there)
        if claim.is_passive(place) != sentence.is_passive(there):
            theirs = (theirs[1], theirs[0])
        if agents := _agents(pivot, sentence, there):
            if claim.is_passive(place):
                ours = (ours[1], ours[0])
            if any(_in(item, agents) for item in ours[1]) and not any(_in(item, agents) for item in ours[0]):
                yield f"in the passage, {agents[0].written} does it"
            continue
        before = [item for item in ours[0] if _in(item, theirs[1])]
        after = [item for item in ours[1] if _in(item, theirs[0])]
        if stranger := _other_subject(claim, place, sentence, there):
            yield f"in the passage, {stranger.written} does it"
        if before and after and _all_known(claim, sentence, before[-1], after[0]):
            yield f"{before[-1].written} and {after[0].written} are swapped"
        elif claim.language not in FREE_ORDER:
            beside = sentence.items[max(0, there - 1) : there] + sentence.items[there + 1 : there + 2]
            own = sentence.items[there].clause
            near = [item for item in beside if item.clause == own]
            sides = [[item for item in side if _in(item, near)] for side in (before, after)]
            if moved := _moved(sides[0], sides[1], ours):
                yield f"{moved.written} has a different role in the passage"


def _agents(verb: Item, sentence: Statement, place: int) -> tuple[Item, ...]:
    """The name that the verb's noun belongs to, in "composer Ann Bell's work" or "by composer Ann Bell"; else empty.

    "Conquer" is no noun of "conquered", and what else a composer does says nothing about the music.
    """
    noun = sentence.items[place]
    written = noun.written.lower()
    if sentence.language != "en" or not written.endswith(_AGENT) or verb.written.lower().startswith(written):
        return ()
    if re.search(_BY_AGENT.format(noun=re.escape(noun.written)), sentence.text) is None:
        return ()
    following = sentence.items[place + 1 :]
    return tuple(takewhile(lambda item: item.clause == noun.clause and item.is_name and not item.before, following))


def _all_known(claim: Statement, sentence: Statement, one: Item, other: Item) -> bool:
    """Does the sentence contain every word between the two? An unknown verb may reverse the meaning: "sold"."""
    first, last = claim.items.index(one), claim.items.index(other)
    return all(sentence.holds(item) for item in claim.items[first + 1 : last] if not item.is_value)


def _other_subject(claim: Statement, place: int, sentence: Statement, there: int) -> Item | None:
    """A name before the verb in the sentence's clause that is not in the claim, which has another name there."""
    ours, theirs = _subject(claim, place), _subject(sentence, there)
    if not ours or not theirs or any(map(claim.holds, theirs)):
        return None
    clause = sentence.clause(sentence.items[there].clause)
    return None if any(_in(item, clause) for item in ours) or not any(map(sentence.holds, ours)) else theirs[0]


def _subject(statement: Statement, place: int) -> list[Item]:
    """The names directly before a verb in its clause."""
    clause = statement.items[place].clause
    return list(
        takewhile(
            lambda item: (item.is_name or item.is_bare) and item.clause == clause and not item.before,
            reversed(statement.items[:place]),
        )
    )


def _moved(before: Sequence[Item], after: Sequence[Item], ours: tuple[list[Item], list[Item]]) -> Item | None:
    """A name on the other side of the verb, while a name from elsewhere has taken its place."""
    for moved, other in ((before, ours[1]), (after, ours[0])):
        named = [item for item in moved if item.is_name]
        if named and any(item.is_name and not _in(item, named) for item in other):
            return named[0]
    return None


def _sides(statement: Statement, place: int) -> tuple[list[Item], list[Item]]:
    """The items before and after an item, excluding those on both sides, and times and places."""
    before, after = (
        [
            item
            for item in side
            if item.figure is None and item.before not in _BESIDE_THE_POINT and _counts(item, statement)
        ]
        for side in (statement.items[:place], statement.items[place + 1 :])
    )
    return [item for item in before if not _in(item, after)], [item for item in after if not _in(item, before)]


def _counts(item: Item, statement: Statement) -> bool:
    if item.written.lower() in statement.grammar.telling or unit_names().get(item.written.lower()) in _PERIODS:
        return False
    return item.is_name or item.is_bare or statement.language not in FREE_ORDER


def _in(item: Item, others: Sequence[Item]) -> bool:
    return any(item.same_as(other) for other in others)


def _by_particles(claim: Statement, sentence: Statement) -> Iterator[str]:
    """In Japanese: the subject in one and the object in the other."""
    for item in claim.items:
        for own in sentence.items:
            if item.same_as(own) and item.particle in _SUBJECT and own.particle in _OBJECT:
                others = [other for other in claim.items if other.particle in _OBJECT]
                subjects = [other for other in sentence.items if other.particle in _SUBJECT]
                if any(_in(other, subjects) for other in others):
                    yield f"{item.written} has a different role in the passage"


VETO = Veto(name="roles", fault=_fault)

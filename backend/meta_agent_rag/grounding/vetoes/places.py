"""A value that the passage gives for something else: another party, another year, or another aspect."""

from collections.abc import Sequence
from itertools import islice, takewhile

from ..support.grounds import Grounds, comparable, share_held
from ..support.statement import FREE_ORDER, Item, Statement
from . import Veto

_BEHIND = 2
"""The number of items after a value that may say what it belongs to."""
_MOST_OF_IT = 0.6


def _fault(grounds: Grounds) -> str | None:
    if not grounds.same_language:
        return None
    values = [item for item in grounds.claim.items if item.is_value]
    for item in values:
        at = [
            (sentence, place)
            for sentence in grounds.sentences
            for place in _places(item, sentence)
            if item.figure is not None or not (sentence.label or sentence.language in FREE_ORDER)
        ]
        if at and all(_misplaced(grounds.claim, item, sentence, place) for sentence, place in at):
            return f"the passage gives {item.written} for something else"
        if at and item.figure is not None and _given_otherwise(grounds, item):
            return f"another sentence gives a different value from {item.written}"
    return None


def _places(item: Item, sentence: Statement) -> list[int]:
    return [place for place, own in enumerate(sentence.items) if item.same_as(own)]


def _misplaced(claim: Statement, item: Item, sentence: Statement, place: int) -> bool:
    """Does the claim lack what is beside the value, and contain what is beside another value instead?"""
    own = sentence.items[place]
    said = claim.clause(next(one.clause for one in claim.items if one.same_as(item)))
    for other, value in enumerate(sentence.items):
        if not comparable(item, value) or item.same_as(value) or claim.holds(value):
            continue
        for labels in (_before, _behind):
            ours, theirs = labels(sentence, place), labels(sentence, other)
            if _exchanged(claim, said, _without(ours, theirs), _without(theirs, ours)):
                return True
        if value.clause != own.clause and item.figure is not None:
            ours, theirs = _names(sentence, own.clause), _names(sentence, value.clause)
            if _exchanged(claim, claim.items, ours, theirs):
                return True
        if value.clause != own.clause and _takes_the_place(claim, sentence, place, other):
            return True
        if value.clause > own.clause and item.figure is not None and _borrows(said, sentence, own, value):
            return True
    return False


def _takes_the_place(claim: Statement, sentence: Statement, place: int, other: int) -> bool:
    """Does the other value's clause name a party that the claim knows, while the value's own names an unknown one?

    Parties correspond if they follow the same word or preposition, or begin their clauses.
    """
    own, value = sentence.items[place], sentence.items[other]
    ours, theirs = sentence.clause(own.clause), sentence.clause(value.clause)
    strange = [item for item in _without(ours, theirs) if not claim.holds(item) and item.figure is None]
    said = [item for item in _without(theirs, ours) if claim.holds(item) and item.figure is None]
    return any(_role(item, sentence) == _role(one, sentence) for item in strange for one in said)


def _borrows(said: Sequence[Item], sentence: Statement, own: Item, value: Item) -> bool:
    """Does the claim give the value what a later clause says of another? An earlier clause may apply to both."""
    labels = _without(sentence.clause(value.clause), sentence.clause(own.clause))
    return any(one.same_as(item) for one in labels for item in said if not comparable(item, value))


def _role(item: Item, sentence: Statement) -> tuple[str, str]:
    """The preposition before an item, or else the item before it in its clause; empty at the beginning."""
    if item.before:
        return "after", item.before
    clause = sentence.clause(item.clause)
    place = clause.index(item)
    return "behind", clause[place - 1].stem if place else ""


def _exchanged(claim: Statement, said: Sequence[Item], ours: Sequence[Item], theirs: Sequence[Item]) -> bool:
    """Does the claim contain none of our labels, and one of theirs instead?"""
    return bool(ours) and not any(map(claim.holds, ours)) and any(one.same_as(item) for one in theirs for item in said)


def _without(items: Sequence[Item], others: Sequence[Item]) -> list[Item]:
    return [item for item in items if not any(item.same_as(other) for other in others)]


def _names(sentence: Statement, clause: int) -> list[Item]:
    return [item for item in sentence.clause(clause) if item.is_name]


def _before(sentence: Statement, place: int) -> list[Item]:
    """The item before a value, which may say what the value belongs to."""
    own, near = sentence.items[place], sentence.items[max(0, place - 1) : place]
    return [item for item in near if item.clause == own.clause and not comparable(item, own)]


def _behind(sentence: Statement, place: int) -> list[Item]:
    """The items after a value, up to the next one of its kind."""
    own = sentence.items[place]
    near = takewhile(lambda item: item.clause == own.clause and not comparable(item, own), sentence.items[place + 1 :])
    return list(islice(near, _BEHIND))


def _given_otherwise(grounds: Grounds, item: Item) -> bool:
    """Does a sentence without the value say more of the claim's content, with another value of its kind?"""
    rest = tuple(own for own in grounds.claim.items if not comparable(own, item))
    if len(rest) < 2:
        return False
    most = max((share_held(rest, (sentence,)) for sentence in grounds.passage if sentence.holds(item)), default=0.0)
    return any(
        _MOST_OF_IT <= share_held(rest, (sentence,)) > most and any(comparable(item, own) for own in sentence.items)
        for sentence in grounds.passage
        if not sentence.holds(item)
    )


VETO = Veto(name="places", fault=_fault)

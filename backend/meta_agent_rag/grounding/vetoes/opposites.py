"""A claim that contradicts its passage by using an antonym of one of its words."""

from itertools import pairwise

from ..support.grounds import Grounds
from ..support.statement import Item, Statement
from . import Veto

_PREFIXES = ("un", "in", "im", "ir", "dis", "non", "mis")
_SHORTEST = 4
_PLACES = frozenset({"under", "over", "above", "below"})


def _fault(grounds: Grounds) -> str | None:
    if not grounds.same_language:
        return None
    for sentence in grounds.sentences:
        for clause in grounds.claim.clauses:
            near = _nearest(clause, sentence)
            for other in sentence.clauses:
                if other == near or any(item.same_as(own) for item in clause for own in other):
                    held = frozenset() if other == near else sentence.stems
                    if found := _opposed(clause, other, grounds.claim, held):
                        return found
    return None


def _nearest(clause: tuple[Item, ...], sentence: Statement) -> tuple[Item, ...]:
    """The clause of the sentence that shares most with the claim's; empty if nothing is shared."""
    shared = [(sum(any(item.same_as(own) for own in other) for item in clause), other) for other in sentence.clauses]
    most = max((count for count, _ in shared), default=0)
    return next((other for count, other in shared if count == most), ()) if most else ()


def _opposed(clause: tuple[Item, ...], near: tuple[Item, ...], claim: Statement, held: frozenset[str]) -> str | None:
    """A word of the claim that a clause of the sentence excludes, unless the sentence contains it too (`held`)."""
    ours, theirs = {item.stem: item for item in clause}, {item.stem: item for item in near}
    beside = _before_names(clause) | _before_names(near)
    for one, other in claim.grammar.opposites:
        for left, right in ((one, other), (other, one)):
            said, there = [ours[stem] for stem in left & set(ours)], [theirs[stem] for stem in right & set(theirs)]
            excluded = said and there and not left & (set(theirs) | held) and not right & set(ours)
            if excluded and sum(item in beside for item in (said[0], there[0])) == 1:
                continue
            if excluded and any(item.negated for item in said) == any(item.negated for item in there):
                return f"the claim says {said[0].written}, the passage {there[0].written}"
    for stem, item in ours.items():
        for own, there_ in theirs.items():
            if (
                _prefixed(stem, own)
                and stem not in {*theirs, *held}
                and own not in ours
                and item.negated == there_.negated
            ):
                return f"the claim says {item.written}, the passage {there_.written}"
    return None


def _before_names(clause: tuple[Item, ...]) -> frozenset[Item]:
    """Words like "under" before a name, which are no opposite of "more": "the rebels under Hester Vane"."""
    return frozenset(
        item for item, following in pairwise(clause) if item.written.lower() in _PLACES and following.is_name
    )


def _prefixed(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _SHORTEST and any(long == prefix + short for prefix in _PREFIXES)


VETO = Veto(name="opposites", fault=_fault)

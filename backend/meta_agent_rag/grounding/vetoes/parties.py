"""A statement about one place or person, attributed to another that has the same role in another clause."""

from itertools import combinations

from ..support.grounds import Grounds
from ..support.statement import Item, Statement
from . import Veto


def _fault(grounds: Grounds) -> str | None:
    if not grounds.same_language:
        return None
    for sentence in grounds.sentences:
        if sentence.label:
            continue
        for clause in grounds.claim.clauses:
            if other := _other(grounds.claim, clause, sentence):
                return f"the passage says it about {other.written}"
        if swapped := _exchanged(grounds.claim, sentence):
            return f"what the passage says about {swapped[0].written} and {swapped[1].written} is exchanged"
    return None


def _exchanged(claim: Statement, sentence: Statement) -> tuple[Item, Item] | None:
    """Two things, each in its own clause with what the sentence's clauses say of the other."""
    for one, other in combinations(claim.clauses, 2):
        ours, theirs = _only(one, other, sentence), _only(other, one, sentence)
        if not ours or not theirs:
            continue
        (first, at), (second, there) = ours[0], theirs[0]
        if at != there and ours[-1][1] == there and theirs[-1][1] == at:
            return first, second
    return None


def _only(clause: tuple[Item, ...], other: tuple[Item, ...], sentence: Statement) -> list[tuple[Item, int]]:
    """The items of one clause and not of the other that occur in exactly one clause of the sentence, with that."""
    placed = []
    for item in clause:
        clauses = {own.clause for own in sentence.items if item.same_as(own)}
        if len(clauses) == 1 and not any(item.same_as(one) for one in other):
            placed.append((item, clauses.pop()))
    return placed


def _other(claim: Statement, clause: tuple[Item, ...], sentence: Statement) -> Item | None:
    for name in (item for item in clause if item.is_name and item.before):
        its = {own.clause for own in sentence.items if name.same_as(own)}
        for item in (one for one in clause if not one.is_name):
            there = {own.clause for own in sentence.items if item.same_as(own)}
            if not its or not there or min(there) <= max(its):  # an earlier statement may apply to both
                continue
            for own in sentence.items:
                if own.clause in there and own.is_name and own.before == name.before and not claim.holds(own):
                    return own
    return None


VETO = Veto(name="parties", fault=_fault)

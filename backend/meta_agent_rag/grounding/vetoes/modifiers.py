"""Something that the passage says about another thing of its kind: the electric oven's heat given to the stone oven."""

from collections.abc import Iterator
from itertools import pairwise

from ..support.grounds import Grounds
from ..support.statement import Item, Statement
from . import Veto


def _fault(grounds: Grounds) -> str | None:
    if not grounds.same_language:
        return None
    for sentence in grounds.sentences:
        there = dict(_modified(sentence))
        for thing, modifier in _modified(grounds.claim):
            other = there.get(thing)
            if other and not grounds.claim.holds(other) and _of_another(grounds.claim, sentence, modifier, other):
                return f"the claim says {modifier.written}, the passage {other.written}"
    return None


def _of_another(claim: Statement, sentence: Statement, modifier: Item, other: Item) -> bool:
    """Is the modifier in another clause, and what the claim says in the clause of the other one?"""
    clauses = {item.clause for item in sentence.items if item.same_as(modifier)}
    values = [item for item in claim.items if item.figure is not None or item.is_name]
    given = {own.clause for item in values for own in sentence.items if item.same_as(own)}
    return bool(clauses) and other.clause not in clauses and other.clause in given and not clauses & given


def _modified(statement: Statement) -> Iterator[tuple[str, Item]]:
    """Each thing that occurs once in a sentence, with the word before it in its clause."""
    stems = [item.stem for item in statement.items]
    for before, item in pairwise(statement.items):
        telling = item.written.lower() in statement.grammar.telling
        plain = not item.is_value and not before.is_value and not item.before and not telling
        if plain and before.clause == item.clause and stems.count(item.stem) == 1:
            yield item.stem, before


VETO = Veto(name="modifiers", fault=_fault)

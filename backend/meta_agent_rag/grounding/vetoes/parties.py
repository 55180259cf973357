"""A statement about one place or person, attributed to another that has the same role in another clause."""

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
    return None


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

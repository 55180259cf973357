"""A row of a table about another thing than the claim, while a different row is about that thing."""

from ..support.grounds import Grounds
from ..support.statement import read
from . import Veto


def _fault(grounds: Grounds) -> str | None:
    rows = [sentence for sentence in grounds.sentences if sentence.label]
    others = [sentence for sentence in grounds.passage if sentence.label and sentence not in rows]
    for row in rows:
        if _mentioned(row.label, grounds):
            return None
    said = [other for other in others if _mentioned(other.label, grounds)]
    return f"the row is about {rows[0].label}, the claim about {said[0].label}" if rows and said else None


def _mentioned(label: str, grounds: Grounds) -> bool:
    items = read(label, grounds.claim.language).items
    return bool(items) and all(grounds.claim.holds(item) for item in items)


VETO = Veto(name="rows", fault=_fault, always=True)

"""A claim that asserts what its passage denies, or the other way round."""

from collections.abc import Sequence

from ..support.grounds import Grounds, share_held
from ..support.statement import Statement, read
from . import Veto

_NEARLY_THE_SAME = 0.75


def _fault(grounds: Grounds) -> str | None:
    if not grounds.same_language:
        return None
    claim = grounds.claim
    rows = [one for one in grounds.sentences if one.label]
    if any(figure.numbers == (0.0,) for row in rows for figure in row.figures):
        return None  # a row denies by its zero
    own = [row for row in rows if any(map(claim.holds, read(row.label, row.language).items))]
    in_cells = bool(own) and all(_denied_in_a_cell(claim, row) for row in own)
    headers = {"; ".join(header for header, _ in _cells(row)) for row in own}
    for sentence in grounds.sentences:
        if in_cells and (sentence.label or sentence.text in headers):
            continue
        if stem := _turned(claim, sentence) or _turned(sentence, claim):
            return f"{stem} is denied in either the claim or the passage, but not in both"
        alike = share_held(claim.items, (sentence, *grounds.titles)) >= _NEARLY_THE_SAME
        if alike and not _denied(sentence, claim) and _uneven(claim, sentence):
            return "the claim and the passage differ in a denial"
    return None


def _cells(row: Statement) -> list[tuple[str, str]]:
    """The header and the value of each cell of a row."""
    parts = (part.partition(" = ") for part in row.text.split("; "))
    return [(header, value) for header, _, value in parts]


def _denied_in_a_cell(claim: Statement, row: Statement) -> bool:
    """Is all that the claim denies the header of a cell that says no or none?"""
    denied = [
        read(header, row.language) for header, value in _cells(row) if read(f"is {value}", row.language).negations
    ]
    negated = [item for item in claim.items if item.negated]
    return bool(negated) and all(any(header.holds(item) for header in denied) for item in negated)


def _turned(one: Statement, other: Statement) -> str | None:
    """What one denies and the other asserts without any word that may have the same effect."""
    for item in one.items:
        if not item.negated or item.is_name:
            continue
        there = [own for own in other.items if item.same_as(own)]
        if there and not any(own.negated for own in there) and not other.implicit:
            return item.written
    return None


def _uneven(claim: Statement, sentence: Statement) -> bool:
    clauses = [clause for clause in sentence.clauses if any(claim.holds(item) for item in clause)]
    denied = sum(any(item.negated for item in clause) for clause in clauses)
    return (claim.negations > 0) != (denied > 0 or (sentence.negations > 0 and len(sentence.clauses) == 1)) and not (
        claim.implicit or sentence.implicit
    )


def _denied(sentence: Statement, claim: Statement) -> bool:
    both: Sequence[Statement] = (sentence, claim)
    return all(one.negations for one in both)


VETO = Veto(name="negation", fault=_fault)

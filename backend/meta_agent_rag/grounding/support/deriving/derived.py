"""Figures of a claim that code derives from those of its passage, with the calculation shown."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from ....text.figures import Figure
from ....text.figures.arithmetic import Calculation
from ....text.figures.figure import stands_in
from ...operations import Operands, Operation, cues, discover_operations
from ..statement import Statement
from .calculated import CONSTANTS, calculated
from .counting import counted
from .operands import MOST_PICKED, columns, picked, tables, together

_SMALL = 20
_COUNTED = frozenset({"", "month", "week", "day", "hour", "minute"})
"""Units of such a constant: "twelve months cost"."""
_FEWEST_CALCULATED = 3
"""From so many figures, calculations of several steps can give almost any other, except years."""


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A figure, as written, that an operation derives from others; `steps` is the calculation."""

    written: str
    operation: str
    steps: str


@dataclass(frozen=True, kw_only=True)
class Vouched:
    """What more may be used for a claim that a critic accepted: the question, tables of the passages, calculations."""

    question: Statement
    passage: Sequence[Statement]
    calculations: Sequence[Calculation] = ()


def derived(
    claim: Statement, named: Sequence[Statement], *, called_for: bool = False, vouched: Vouched | None = None
) -> tuple[Derived, ...]:
    """The claim's figures that are not in the named words but follow from theirs.

    With `called_for`, only by an operation that a word of the claim calls for, a count and a constant factor included.
    All figures of one kind are used, so that a number is not found by chance; those that the claim itself repeats
    are tried first. A critic that `vouched` for the claim makes chance unlikely: then any few may be used.
    """
    sources = [figure for statement in named for figure in statement.figures]
    multiplies = not called_for or _calls_for("product", claim)
    factors = [one for one in claim.figures if multiplies and one.number in CONSTANTS and one.unit in _COUNTED]
    found: list[Derived] = []
    reached: list[Figure] = []
    for figure in claim.figures:
        if not stands_in(figure, sources):
            ways = _ways(figure, claim, named, sources, called_for=called_for)
            if vouched is not None:
                at_hand = [*sources, *reached]
                ways = chain(
                    _written_out(figure, named, vouched, at_hand), ways, _free_ways(figure, named, vouched, at_hand)
                )
            followed = list(islice(ways, 1))
            found += followed
            reached += [figure] if followed else []
            for constant in (one for one in factors if one is not figure):
                for other in sources:
                    for steps in discover_operations()["product"].steps(figure, (constant, other)):
                        found += [
                            Derived(written=figure.written, operation="product", steps=steps),
                            Derived(written=constant.written, operation="product", steps=steps),
                        ]
    return tuple({one.written: one for one in reversed(found)}.values())


def may_follow(figure: Figure, claim: Statement, statements: Sequence[Statement], question: Statement) -> bool:
    """Could a critic's approval make it follow from the statements, the question, and the claim's other figures?

    A small number may always be a count; with a table, or with several figures, anything may follow.
    """
    if figure.numbers and not figure.unit and figure.date is None and figure.number <= _SMALL:
        return True
    at_hand = [one for statement in (*statements, claim) for one in statement.figures if one is not figure]
    other_than_years = [one for one in (*at_hand, *question.figures) if one.date is None or one.is_date]
    several = (figure.date is None or figure.is_date) and len(other_than_years) >= _FEWEST_CALCULATED
    many = len(at_hand) + len(question.figures) > MOST_PICKED
    if several or many or any(statement.label for statement in statements):
        return True
    return any(_free_ways(figure, statements, Vouched(question=question, passage=()), at_hand))


def _ways(
    figure: Figure, claim: Statement, named: Sequence[Statement], sources: Operands, *, called_for: bool
) -> Iterator[Derived]:
    allowed = [one for name, one in discover_operations().items() if not called_for or _calls_for(name, claim)]
    for operands in together(claim, named, sources):
        yield from _calculated(figure, operands, allowed)
    counts = not figure.unit and (not called_for or _calls_for("count", claim))
    if counts and (entries := counted(figure, [claim, *named])):
        yield Derived(written=figure.written, operation="count", steps=entries)


def _free_ways(figure: Figure, named: Sequence[Statement], vouched: Vouched, at_hand: Operands) -> Iterator[Derived]:
    """By the columns and rows of tables with a named row, then by figures picked from those at hand and the question's.

    At hand are those of the named words, and what was derived from them before.
    """
    if figure.ordinal and (places := [one.text for one in named if _gives(one, int(figure.number))]):
        yield Derived(written=figure.written, operation="count", steps=places[0])  # the third quarter is Q3
    if figure.unit == "day" and (days := [one.text for one in named if len(one.days_named) == figure.number]):
        yield Derived(written=figure.written, operation="count", steps=days[0])
    if not figure.unit and (entries := counted(figure, named, freely=True)):
        yield Derived(written=figure.written, operation="count", steps=entries)
    operations = discover_operations().values()
    for rows in tables(named, vouched.passage):
        for operands in columns(rows):
            yield from _calculated(figure, operands, operations)
        for counting in (rows, rows[1:]):  # all, or those beside the one in question
            if entries := counted(figure, (), counting):
                yield Derived(written=figure.written, operation="count", steps=entries)
    for operation in operations:
        for operands in picked(operation, [*at_hand, *vouched.question.figures]):
            yield from _calculated(figure, operands, (operation,))


def _written_out(figure: Figure, named: Sequence[Statement], vouched: Vouched, at_hand: Operands) -> Iterator[Derived]:
    for steps in calculated(figure, vouched.calculations, at_hand, vouched.question.figures, named):
        yield Derived(written=figure.written, operation="calculation", steps=steps)


def _calculated(figure: Figure, operands: Operands, operations: Iterable[Operation]) -> Iterator[Derived]:
    for operation in operations:
        for steps in operation.steps(figure, operands):
            yield Derived(written=figure.written, operation=operation.name, steps=steps)


def _gives(statement: Statement, number: int) -> bool:
    return re.search(rf"(?<!\d){number}(?!\d)", statement.text) is not None


def _calls_for(operation: str, claim: Statement) -> bool:
    text = claim.text.lower()
    return any(_said(word, text) for word in cues().get(operation, {}).get(claim.language, ()))


def _said(word: str, text: str) -> bool:
    if not word.isascii() or not word.isalnum():
        return word in text
    return re.search(rf"(?<!\w){word}(?!\w)", text) is not None

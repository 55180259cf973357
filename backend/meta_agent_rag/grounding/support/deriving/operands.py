"""Which figures are tried together when a figure of a claim is derived from others."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations

from ....text.figures import Figure, figures
from ....text.figures.figure import stands_in
from ...operations import Operands, Operation
from ..statement import Statement

_MOST_PAIRED = 40
MOST_PICKED = 12
"""The number of figures up to which three or more may be picked."""


def together(claim: Statement, named: Sequence[Statement], sources: Operands) -> Iterator[Operands]:
    """All figures; those with the claim's own words beside them; those that the claim repeats."""
    yield sources
    labelled = [
        item.figure
        for statement in named
        for place, item in enumerate(statement.items)
        if item.figure is not None and _labelled(statement, place, claim)
    ]
    if 1 < len(labelled) < len(sources):
        yield labelled
    for clause in (clause for statement in named for clause in statement.clauses):
        own = [item.figure for item in clause if item.figure is not None]
        known = len(own) == 2 or any(item.figure is None and claim.holds(item) for item in clause)
        if 1 < len(own) < len(sources) and known:
            yield own
    repeated = [figure for figure in sources if stands_in(figure, claim.figures)]
    rest = [figure for figure in sources if figure not in repeated]
    if repeated and len(rest) == 1:
        yield [*rest, *repeated]
    if len(repeated) > 1:
        yield repeated


def picked(operation: Operation, sources: Operands) -> Iterator[Operands]:
    """As many figures as the operation may pick from all; none if there are too many to tell chance from intent."""
    for size in operation.picks:
        if len(sources) <= (_MOST_PAIRED if size <= 2 else MOST_PICKED):
            yield from combinations(sources, size)


def columns(rows: Sequence[Statement]) -> Iterator[Operands]:
    """The columns of a table with a figure in each of several rows, and every two of them joined row by row."""
    cells = [_cells(row) for row in rows if row.label]
    full = [
        [row[name][0] for row in cells]
        for name in (cells[0] if len(cells) > 1 else ())
        if all(len(row.get(name, ())) == 1 for row in cells)
    ]
    yield from full
    for one, other in combinations(full, 2):
        yield list(chain.from_iterable(zip(one, other, strict=True)))


def tables(named: Sequence[Statement], passage: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
    """The named rows of each table, then all of its rows in the passage."""
    headers = dict.fromkeys(_header(row) for row in named if row.label)
    for header in headers:
        for statements in (named, passage):
            rows = list(dict.fromkeys(row for row in statements if row.label and _header(row) == header))
            if len(rows) > 1:
                yield rows


def _header(row: Statement) -> tuple[str, ...]:
    return tuple(name for name, equals, _ in (part.partition(" = ") for part in row.text.split("; ")) if equals)


def _cells(row: Statement) -> Mapping[str, Sequence[Figure]]:
    """The figures of each cell of a row, by its header."""
    parts = (part.partition(" = ") for part in row.text.split("; "))
    return {name: figures(value, row.language) for name, equals, value in parts if equals}


def _labelled(statement: Statement, place: int, claim: Statement) -> bool:
    """Does the claim contain the word after a figure, or the one before it if none follows?"""
    own = statement.items[place]
    before, behind = statement.items[max(0, place - 1) : place], statement.items[place + 1 : place + 2]
    words = [item for item in behind if item.figure is None]
    near = [item for item in (*words, *before) if item.clause == own.clause]
    return bool(near) and claim.holds(near[0])

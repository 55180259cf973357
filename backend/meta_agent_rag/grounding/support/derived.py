"""Figures of a claim that code derives from those of its passage, with the calculation shown."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from ...text.figures import Figure
from ...text.figures.figure import stands_in
from ..operations import Operands, cues, discover_operations
from .statement import Statement

_LIST_BREAK = re.compile(r"\s*(?:,|;|\u3001|\uff0c|\band\b|\bund\b|\bet\b|\by\b|\be\b|\bor\b|\boder\b)\s*")
_LONGEST_ENTRY = 4
_SMALL = 20
_MOST_COUNTED = 50
_CONSTANTS = frozenset({2, 7, 10, 12, 24, 52, 60, 100, 365, 1000})
"""Common knowledge: days of a week, months of a year, twice."""


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A figure, as written, that an operation derives from others; `steps` is the calculation."""

    written: str
    operation: str
    steps: str


def derived(claim: Statement, named: Sequence[Statement], *, called_for: bool = False) -> tuple[Derived, ...]:
    """The claim's figures that are not in the named words but follow from theirs.

    With `called_for`, only by an operation that a word of the claim calls for, a count and a constant factor included.
    All figures of one kind are used, so that a number is not found by chance; those that the claim itself repeats
    are tried first.
    """
    sources = [figure for statement in named for figure in statement.figures]
    multiplies = not called_for or _calls_for("product", claim)
    factors = [one for one in claim.figures if multiplies and one.number in _CONSTANTS and not one.unit]
    found = []
    for figure in claim.figures:
        if not stands_in(figure, sources):
            found += list(_ways(figure, claim, named, sources, called_for=called_for))[:1]
            for constant in (one for one in factors if one is not figure):
                for other in sources:
                    for steps in discover_operations()["product"].steps(figure, (constant, other)):
                        found += [
                            Derived(written=figure.written, operation="product", steps=steps),
                            Derived(written=constant.written, operation="product", steps=steps),
                        ]
    return tuple({one.written: one for one in reversed(found)}.values())


def may_follow(figure: Figure, sources: Operands) -> bool:
    """Can it follow from one or two of the sources at all? A small number may always be a count."""
    if figure.numbers and not figure.unit and figure.date is None and figure.number <= _SMALL:
        return True
    pairs = combinations(sources, 2)
    return any(True for pair in pairs for one in discover_operations().values() for _ in one.steps(figure, pair))


def _ways(
    figure: Figure, claim: Statement, named: Sequence[Statement], sources: Operands, *, called_for: bool
) -> Iterator[Derived]:
    for operands in _choices(claim, named, sources):
        for name, operation in discover_operations().items():
            if called_for and not _calls_for(name, claim):
                continue
            for steps in operation.steps(figure, operands):
                yield Derived(written=figure.written, operation=name, steps=steps)
    counts = not figure.unit and (not called_for or _calls_for("count", claim))
    if counts and (entries := _counted(figure, [claim, *named])):
        yield Derived(written=figure.written, operation="count", steps=entries)


def _calls_for(operation: str, claim: Statement) -> bool:
    text = claim.text.lower()
    return any(_said(word, text) for word in cues()[operation])


def _said(word: str, text: str) -> bool:
    if not word.isascii() or not word.isalnum():
        return word in text
    return re.search(rf"(?<!\w){word}(?!\w)", text) is not None


def _choices(claim: Statement, named: Sequence[Statement], sources: Operands) -> Iterator[Operands]:
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


def _labelled(statement: Statement, place: int, claim: Statement) -> bool:
    """Does the claim contain the word after a figure, or the one before it if none follows?"""
    own = statement.items[place]
    before, behind = statement.items[max(0, place - 1) : place], statement.items[place + 1 : place + 2]
    words = [item for item in behind if item.figure is None]
    near = [item for item in (*words, *before) if item.clause == own.clause]
    return bool(near) and claim.holds(near[0])


def _counted(figure: Figure, named: Sequence[Statement]) -> str:
    """The entries of a list with that many entries, separated by commas; empty if there is none."""
    wanted = int(figure.number)
    if wanted != figure.number or not 2 <= wanted <= _MOST_COUNTED:
        return ""
    for statement in named:
        for entries in _lists(statement.text):
            alike = len({any(map(str.isdigit, entry)) for entry in entries}) == 1
            if len(entries) == wanted and alike:
                bare = [
                    next((word for word in entry.split() if any(map(str.isdigit, word))), entry) for entry in entries
                ]
                return f"{', '.join(bare)}: {wanted}"
    return ""


def _lists(text: str) -> Iterator[list[str]]:
    """The lists in a text: runs of short entries, with and without the last words before them."""
    for stretch in re.split(r"[:.!?\n|](?=\s|$)", text):
        run: list[str] = []
        for number, entry in enumerate(_LIST_BREAK.split(stretch.strip())):
            words = entry.split()
            if words and (len(words) <= _LONGEST_ENTRY or number == 0):
                run.append(entry if len(words) <= _LONGEST_ENTRY else words[-1])
                continue
            if len(run) > 1:
                yield from (run, run[1:])
            run = [words[-1]] if words else []
        if len(run) > 1:
            yield from (run, run[1:])

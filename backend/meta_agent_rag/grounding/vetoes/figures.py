"""A figure that is not in the named words and cannot be derived from theirs."""

import re
from itertools import pairwise

from ...text.figures.figure import stands_in
from ..support.grounds import Grounds
from ..support.statement import Statement
from . import Veto


def _fault(grounds: Grounds) -> str | None:
    sources = [figure for statement in grounds.named for figure in statement.figures]
    sources += [figure for title in grounds.titles for figure in title.figures if figure.date is not None]
    for place, item in enumerate(grounds.claim.items):
        figure = item.figure
        if figure is None or figure.written in grounds.follows or stands_in(figure, sources) or grounds.given(item):
            continue
        if _is_day(grounds.claim, place) and any(
            one.date is not None and one.date.day == figure.number for one in sources
        ):
            continue
        if _is_label(grounds.claim, place) and any(_labelled(one, grounds.claim, place) for one in grounds.around()):
            continue
        return f"{figure.written} is not in the passage"
    return None


_DAYS = frozenset({"day", "tag", "jour", "día", "dia", "giorno", "dag"})


def _is_day(claim: Statement, place: int) -> bool:
    """Is a number written as the day of a date: "before the 30th", "antes del día 30"?"""
    figure, before = claim.items[place].figure, claim.items[place - 1] if place else None
    if figure is None or figure.unit or figure.date is not None:
        return False
    return figure.ordinal or (before is not None and before.written.lower() in _DAYS)


def _is_label(claim: Statement, place: int) -> bool:
    """Does a plain number follow a word directly, as in "flat 9"? It is then a name rather than an amount."""
    figure, before = claim.items[place].figure, claim.items[max(0, place - 1)]
    return (
        figure is not None
        and not figure.unit
        and figure.date is None
        and figure.written.isdecimal()
        and before.figure is None
        and re.search(rf"\b{re.escape(before.written)}\s+$", claim.text[: figure.start]) is not None
    )


def _labelled(sentence: Statement, claim: Statement, place: int) -> bool:
    """Does the sentence contain the same word with the same number?"""
    word, number = claim.items[place - 1], claim.items[place]
    return any(one.same_as(word) and other.same_as(number) for one, other in pairwise(sentence.items))


VETO = Veto(name="figures", fault=_fault, always=True)

"""A figure that is not in the named words and cannot be derived from theirs."""

from ...text.figures.figure import stands_in
from ..support.grounds import Grounds
from . import Veto


def _fault(grounds: Grounds) -> str | None:
    sources = [figure for statement in grounds.named for figure in statement.figures]
    sources += [figure for title in grounds.titles for figure in title.figures if figure.date is not None]
    for item in grounds.claim.items:
        figure = item.figure
        if figure is None or figure.written in grounds.follows or stands_in(figure, sources) or grounds.given(item):
            continue
        return f"{figure.written} is not in the passage"
    return None


VETO = Veto(name="figures", fault=_fault, always=True)

"""The figures of grounded answers: right ones withheld, wrong ones shown, unanswerable questions refused, levels."""

from collections import Counter
from collections.abc import Sequence

from ..statistics import binomial_interval
from ..tables import Table
from .rows import Row

_LEVELS = ("high", "medium", "low")


def quality(rows: Sequence[Row]) -> Table:
    """The shares, with exact 95 % intervals."""
    answerable, others = ([row for row in rows if row.answerable is kind] for kind in (True, False))
    right = [row for row in answerable if row.draft_is_right]
    shown = [row for row in answerable if row.is_shown]
    cells = [
        ("answerable questions shown an answer", *share(len(shown), len(answerable))),
        ("right drafts withheld", *share(sum(not row.shown_is_right for row in right), len(right))),
        ("wrong among shown answers", *share(sum(not row.shown_is_right for row in shown), len(shown))),
        ("unanswerable questions refused", *share(sum(not row.is_shown for row in others), len(others))),
        ("wrong among shown answers, unanswerable questions included", *_wrong_of_all(rows)),
    ]
    return Table(name="grounded", title="Grounded answers", head=("", "n", "of", "% [95 %]"), rows=cells)


def _wrong_of_all(rows: Sequence[Row]) -> tuple[str, str, str]:
    shown = [row for row in rows if row.is_shown]
    return share(sum(not (row.answerable and row.shown_is_right) for row in shown), len(shown))


def levels(rows: Sequence[Row]) -> Table:
    """How often shown answers to answerable questions are right, by level of confidence."""
    shown = [row for row in rows if row.answerable and row.is_shown]
    cells = []
    for level in _LEVELS:
        own = [row for row in shown if row.level == level]
        cells.append((level, *share(sum(row.shown_is_right for row in own), len(own))))
    return Table(
        name="grounded-levels",
        title="Right answers by level of confidence",
        head=("confidence", "right", "of", "% [95 %]"),
        rows=cells,
    )


def reasons(rows: Sequence[Row]) -> Table:
    """Why answers were withheld: from right drafts, from wrong ones, and to unanswerable questions."""
    withheld = [row for row in rows if not row.is_shown]
    groups = (
        Counter(row.refused for row in withheld if row.answerable and row.draft_is_right),
        Counter(row.refused for row in withheld if row.answerable and not row.draft_is_right),
        Counter(row.refused for row in withheld if not row.answerable),
    )
    names = sorted({row.refused or "" for row in withheld}, key=lambda name: (-sum(one[name] for one in groups), name))
    cells = [(name, *(str(one[name]) for one in groups)) for name in names]
    head = ("reason", "right drafts", "wrong drafts", "unanswerable questions")
    return Table(name="grounded-reasons", title="Why answers were withheld", head=head, rows=cells)


def share(part: int, whole: int) -> tuple[str, str, str]:
    """A count, of how many, and the percentage with its exact interval."""
    if not whole:
        return ("0", "0", "-")
    low, high = binomial_interval(part, whole)
    return (str(part), str(whole), f"{100 * part / whole:.0f} [{100 * low:.0f}, {100 * high:.0f}]")

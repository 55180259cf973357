"""Claims that locate something on a page: true of a passage on that page that mentions it."""

from collections.abc import Iterator

from .grounds import share_held
from .sources import Source
from .statement import Item, Statement
from .words import page_words

_MOSTLY = 0.5


def on_its_page(claim: Statement, source: Source, question: Statement) -> bool:
    """Does the claim place on the passage's page something that a sentence, a heading or its title mentions?

    Everything else in the claim must be in the question or in that sentence: "Passive compliance is discussed on
    page 3" for the question "Which page discusses passive compliance?".
    """
    first, last = source.passage.start_page, source.passage.end_page
    if first is None:
        return False
    pages = list(_page_figures(claim))
    numbers = [number for item in pages if item.figure is not None for number in item.figure.numbers[:1]]
    if not numbers or not all(first <= number <= (last or first) for number in numbers):
        return False
    rest = [item for item in claim.items if item not in pages and item.written.lower() not in page_words()]
    if not rest:  # "Page 41." places the question's subject there
        subject = tuple(item for item in question.items if item.written.lower() not in page_words())
        return any(share_held(subject, (one, source.title, source.heading)) >= _MOSTLY for one in source.statements)
    return any(_speaks_of(rest, sentence, source, question) for sentence in source.statements)


def _speaks_of(rest: list[Item], sentence: Statement, source: Source, question: Statement) -> bool:
    known = (sentence, source.title, source.heading)
    held = [any(one.holds(item) for one in known) for item in rest]
    asked = [question.holds(item) or item.stem in sentence.grammar.light for item in rest]
    return any(held) and all(is_held or is_asked for is_held, is_asked in zip(held, asked, strict=True))


def _page_figures(claim: Statement) -> Iterator[Item]:
    """Figures beside a word for a page."""
    words = page_words()
    for place, item in enumerate(claim.items):
        near = claim.items[max(0, place - 2) : place + 2]
        if item.figure is not None and any(other.written.lower() in words for other in near if other is not item):
            yield item

"""Claims that locate something on a page: true of a passage on that page that mentions it."""

from collections.abc import Sequence

from ...text.figures import Figure
from ...text.figures.figure import stands_in
from ...text.names import words
from .grounds import share_held
from .sources import Source
from .statement import Item, Statement
from .words import page_words

_MOSTLY = 0.5
_FIRST_WORDS = 4
"""Of a question that asks for a page: "on which page is ..."."""


def on_its_page(claim: Statement, source: Source, question: Statement) -> bool:
    """Does the claim place on a page of the passage something that a sentence there, a heading or its title mentions?

    Everything else in the claim must be in the question or in that sentence: "Passive compliance is discussed on
    page 3" for the question "Which page discusses passive compliance?". If the passage's page breaks are known, the
    page must be that of a sentence that mentions most of it.
    """
    numbers = [number for figure in page_figures(claim) for number in figure.numbers[:1]]
    first, last = source.passage.pages(0, len(source.passage.text)) or (0, 0)
    if not numbers or not all(max(first, 1) <= number <= last for number in numbers):
        return False
    rest = [item for item in claim.items if item.figure not in page_figures(claim) and not _is_page_word(item)]
    subject = tuple(item for item in question.items if not _is_page_word(item))
    if rest:
        matching = [one for one in source.sentences if _speaks_of(rest, one.statement, source, question)]
    else:  # "Page 41." places the question's subject there
        beside = (source.title, source.heading)
        matching = [one for one in source.sentences if share_held(subject, (one.statement, *beside)) >= _MOSTLY]
    if not source.passage.page_breaks:
        return bool(matching)
    held = [sum(one.statement.holds(item) for item in (*rest, *subject)) for one in matching]
    most = [
        source.passage.pages(one.start, one.end) for one, many in zip(matching, held, strict=True) if many == max(held)
    ]
    return all(any(pages and pages[0] <= number <= pages[1] for pages in most) for number in numbers)


def as_page(question: str, answer: str) -> str:
    """A bare number that answers a question for a page, as a claim about one; any other answer as it is.

    >>> as_page("Which page discusses passive compliance?", "3"), as_page("How many pages has it?", "3")
    ('page 3', '3')
    """
    number = answer.strip().rstrip(".")
    asked = words(question)
    page = next((one for one in asked[:_FIRST_WORDS] if one in page_words()), None)
    is_count = page is None or page.endswith("s") or not (number.isascii() and number.isdigit())
    return answer if is_count else f"{page} {number}"


def page_figures(claim: Statement) -> tuple[Figure, ...]:
    """Figures beside a word for a page."""
    near = ((item, claim.items[max(0, place - 2) : place + 2]) for place, item in enumerate(claim.items))
    return tuple(
        item.figure
        for item, others in near
        if item.figure is not None and any(_is_page_word(other) for other in others if other is not item)
    )


def on_the_page_of(
    figures: Sequence[Figure], words: Sequence[str], sources: Sequence[Source]
) -> tuple[tuple[Figure, ...], tuple[Figure, ...]]:
    """The figures that are pages on which the words stand, and those that are other pages of these passages."""
    own = [pages for source in sources for part in words if (pages := source.pages_of(part))]
    right = tuple(one for one in figures if any(first <= one.number <= last for first, last in own))
    return right, tuple(one for one in figures if one not in right and is_a_page(one, sources))


def is_a_page(figure: Figure, sources: Sequence[Source]) -> bool:
    """Does one of the passages extend over the page with this number?"""
    ranges = [pages for one in sources if (pages := one.passage.pages(0, len(one.passage.text)))]
    return any(first <= figure.number <= last for first, last in ranges)


def names_other_pages(claim: Statement, sentences: Sequence[Statement]) -> bool:
    """Does the claim give the number of a page that none of the sentences gives as one?"""
    given = [figure for one in sentences for figure in page_figures(one)]
    return any(not stands_in(figure, given) for figure in page_figures(claim))


def _speaks_of(rest: list[Item], sentence: Statement, source: Source, question: Statement) -> bool:
    known = (sentence, source.title, source.heading)
    held = [any(one.holds(item) for one in known) for item in rest]
    asked = [question.holds(item) or item.stem in sentence.grammar.light for item in rest]
    return any(held) and all(is_held or is_asked for is_held, is_asked in zip(held, asked, strict=True))


def _is_page_word(item: Item) -> bool:
    return item.written.lower() in page_words()

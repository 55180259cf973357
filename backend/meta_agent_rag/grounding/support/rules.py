"""Judges claims by rules, without a model.

A claim is `supported` if it copies whole sentences of a cited passage, or if one sentence says it with the same words
in the same order. It is `likely` if one sentence, with the passage's title, contains all its words in any order.
Figures are compared as values: numbers, dates and times of day, in any unit; one may be derived from others of the
passage by an operation that the claim's words call for. Unless a sentence is copied, no veto may fire: a denial,
swapped parties, a value of something else, an opposite; and the claim must not omit a condition. A figure
refutes a claim if neither the cited passages nor those connected with them give it or others from which it could
follow, a name (except in German) if no passage of the prompt contains it. Everything else is open.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ...retrieval.passage import Found
from ...text.figures.figure import stands_in
from ...text.language import language_of
from ..claims import Claim
from ..operations import cues
from ..quotes import is_verbatim
from ..vetoes import fault
from .deriving.derived import Derived, derived, may_follow
from .grounds import NEARLY, Grounds, share_held
from .neighbours import neighbours
from .pages import is_a_page, names_other_pages, on_its_page, page_figures
from .sources import Source, read_sources
from .statement import Item, Statement, read
from .verdict import Standing, Support


def supports(
    claims: Sequence[Claim], passages: Sequence[Found], *, question: str = "", quotes: Sequence[str] = ()
) -> tuple[Support, ...]:
    """The rules' verdict on each claim of an answer, in order; `likely` counts as supported.

    `passages` are those of the writer's prompt, numbered from 1; `quotes` is what the writer copied. A
    claim without a mark is compared with the passages that the answer's other claims cite and those that are quoted.
    """
    language = language_of_answer(question, claims)
    asked = read(question, language)
    elsewhere = cited_or_quoted(claims, passages, quotes)
    found = []
    prompted = [one.passage for one in passages]
    everything = read_sources(prompted, range(1, len(prompted) + 1))
    for claim in claims:
        cited = claim.marks or elsewhere
        sources = read_sources(prompted, cited)
        copied = next((one for one in sources if one.is_copied_by(claim.text)), None)
        if copied is not None:
            found.append(_said(copied))
        else:
            beside = read_sources(prompted, neighbours(claim.text, cited, prompted))
            statement = read_claim(claim, language, sources)
            found.append(standing(statement, sources, asked, quotes, linked=beside, prompted=everything))
    return tuple(found)


def _said(source: Source) -> Support:
    """The support of a claim that a passage makes."""
    number, passage = source.number, source.passage.id
    return Support(score=1.0, passage_id=passage, number=number, supported=True, standing="supported")


def read_claim(claim: Claim, language: str, sources: Sequence[Source]) -> Statement:
    """The claim as read in the answer's language, or in that of a passage from which it is nearly copied.

    The language of a short text is easily mistaken for a closely related one.
    """
    statement = read(claim.text, language)
    for source in sources:
        code = source.title.language
        if code != language:
            own = read(claim.text, code)
            if any(share_held(own.items, (one,)) >= NEARLY for one in source.statements):
                return own
    return statement


def language_of_answer(question: str, claims: Sequence[Claim]) -> str:
    """The language of an answer, detected from its question and all its claims, since a single claim is too short."""
    return language_of(" ".join((question, *(claim.text for claim in claims))))


def cited_or_quoted(claims: Sequence[Claim], passages: Sequence[Found], quotes: Sequence[str]) -> tuple[int, ...]:
    """The numbers of the passages that a claim cites, then of those that are quoted, without duplicates."""
    cited = [number for claim in claims for number in claim.marks]
    quoted = [
        number
        for number, found in enumerate(passages, start=1)
        if any(is_verbatim(quote, [found.passage.searchable()]) for quote in quotes)
    ]
    return tuple(dict.fromkeys((*cited, *quoted)))


def standing(
    claim: Statement,
    sources: Sequence[Source],
    question: Statement,
    quotes: Sequence[str] = (),
    *,
    linked: Sequence[Source] = (),
    prompted: Sequence[Source] = (),
) -> Support:
    """The rules' verdict on a claim, compared with the passages that it cites.

    It is not refuted if its figures are in `linked`, those connected with them, and its names in any of the prompt.
    """
    if not sources:
        return Support(score=0.0, passage_id=None, supported=False, standing="refuted")
    if placed := next((source for source in sources if on_its_page(claim, source, question)), None):
        return _said(placed)
    best: Support | None = None
    for source, sentences in _candidates(sources, quotes):
        found = _held_against(claim, source, sentences, sources, question)
        if best is None or _rank(found) > _rank(best):
            best = found
        if best.standing == "supported":
            return best
    nearest = best or Support(score=0.0, passage_id=sources[0].passage.id, number=sources[0].number, supported=False)
    if nearest.standing == "open" and (missing := _missing(claim, (*sources, *linked), prompted, question)):
        return replace(nearest, standing="refuted", missing=missing)
    return nearest


def _candidates(sources: Sequence[Source], quotes: Sequence[str]) -> Iterator[tuple[Source, tuple[Statement, ...]]]:
    """Single sentences, and the quoted ones taken together, from which a figure may follow."""
    for source in sources:
        for sentence in source.statements:
            yield source, (sentence,)
    quoted = [(source, sentence) for source in sources for quote in quotes for sentence in source.around(quote)]
    if len(quoted) > 1:
        yield quoted[0][0], tuple(dict.fromkeys(sentence for _, sentence in quoted))


def _rank(support: Support) -> tuple[int, float]:
    return ("refuted", "open", "likely", "supported").index(support.standing), support.score


def _held_against(
    claim: Statement, source: Source, sentences: tuple[Statement, ...], sources: Sequence[Source], question: Statement
) -> Support:
    titles = tuple(one.title for one in sources)
    beside = (*sentences, *titles)
    score = share_held(claim.items, beside)
    support = Support(score=score, passage_id=source.passage.id, number=source.number, supported=False, standing="open")
    if not claim.items:
        return replace(support, score=1.0, standing="likely", supported=True)
    unheld = [item for item in claim.items if not _held(item, sentences, titles) and not _light(item, claim)]
    follows = derived(claim, sentences, called_for=True) if any(item.figure for item in unheld) else ()
    if source.passage.start_page is not None and names_other_pages(claim, sentences):
        return support
    unknown = [item for item in unheld if not _explained(item, follows, claim, beside)]
    foreign = any(sentence.language != claim.language for sentence in sentences)
    if unknown or foreign or (len(sentences) > 1 and not follows):
        return support
    grounds = Grounds(
        claim=claim,
        sentences=sentences,
        named=sentences,
        passage=tuple(sentence for one in sources for sentence in one.statements),
        titles=titles,
        question=question,
        follows=frozenset(one.written for one in follows),
    )
    if found := fault(grounds):
        return replace(support, fault=found)
    own = {stem for stem, _ in claim.hedges}
    if any(sentence.hedged(claim) - own for sentence in sentences):
        return support
    verdict: Standing = "supported" if not follows and _in_order(claim, sentences[0]) else "likely"
    return replace(support, score=1.0, standing=verdict, supported=True, derived=follows)


def _held(item: Item, sentences: Sequence[Statement], titles: Sequence[Statement]) -> bool:
    """Do they mention it? In a title, only dates count as figures, since titles are often numbered."""
    numbered = item.figure is not None and item.figure.date is None
    return any(one.holds(item) for one in (sentences if numbered else (*sentences, *titles)))


def _light(item: Item, claim: Statement) -> bool:
    return item.figure is None and item.stem in claim.grammar.light


def _explained(item: Item, follows: Sequence[Derived], claim: Statement, beside: Sequence[Statement]) -> bool:
    """Is it a figure that follows or that another sentence rounds, or a word that calls for the operation?"""
    if item.figure is not None:
        figures = [figure for one in beside for figure in one.figures]
        return any(one.written == item.figure.written for one in follows) or stands_in(item.figure, figures)
    return any(item.written.lower() in cues().get(one.operation, {}).get(claim.language, ()) for one in follows)


def _in_order(claim: Statement, sentence: Statement) -> bool:
    """Does the sentence say it in the claim's order, from the beginning of a clause, omitting only words?

    An omission must not be a value or the end of a clause, and neither may contain a denial.
    """
    if claim.negations != sentence.negations:
        return False
    places: list[int] = []
    for item in claim.items:
        at = [place for place, own in enumerate(sentence.items) if own.same_as(item) and place > (places or [-1])[-1]]
        if at:
            places.append(at[0])
        elif sentence.holds(item):
            return False
    if not places:
        return False
    first = sentence.items[places[0]]
    begins = places[0] == 0 or sentence.items[places[0] - 1].clause != first.clause
    return begins and all(_joined(sentence, one, other) for one, other in pairwise(places))


def _joined(sentence: Statement, one: int, other: int) -> bool:
    between = sentence.items[one + 1 : other]
    same_clause = sentence.items[one].clause == sentence.items[other].clause
    return other == one + 1 or (same_clause and not any(item.is_value for item in between))


def _missing(
    claim: Statement, sources: Sequence[Source], prompted: Sequence[Source], question: Statement
) -> tuple[str, ...]:
    """Figures that no source gives and that cannot be derived from any; names that nothing in the prompt contains."""
    statements = [statement for source in sources for statement in (*source.statements, source.title)]
    figures = [figure for statement in statements for figure in statement.figures]
    follows = {one.written for one in derived(claim, statements)}
    pages = page_figures(claim)
    same_language = all(statement.language == claim.language for source in sources for statement in source.statements)
    found = []
    for item in claim.items:
        if item.figure is not None:
            known = stands_in(item.figure, figures) or item.figure.written in follows
            known = known or (item.figure in pages and is_a_page(item.figure, sources))
            lacks = not known and not may_follow(item.figure, claim, statements, question)
        else:
            # in German every noun is capitalised
            named = item.is_name and claim.language != "de" and not claim.dates(item)
            lacks = named and same_language and not any(one.holds(item) for one in statements)
            lacks = lacks and not any(one.holds(item) for other in prompted for one in (*other.statements, other.title))
        if lacks and not question.holds(item):
            found.append(item.written)
    return tuple(found)

"""What rules say of a claim, without a model.

A claim is `supported` where one sentence of a cited passage says it with the same words in the same order. It is
`likely` where one sentence, with the passage's title, holds all its words in any order. Figures are compared as values:
numbers, dates and times of day, in any unit; one may follow from others of the passage by an operation that the claim's
words call for. Either way no veto may fire: a denial, parties that have changed places, a value that is given of
something else, an opposite; nor may the claim leave out a condition. A figure or a name that no cited passage has
refutes a claim. All else is open.
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
from .derived import Derived, derived, may_follow
from .grounds import NEARLY, Grounds, share_held
from .pages import on_its_page
from .sources import Source, read_sources
from .statement import Item, Statement, read
from .verdict import Standing, Support


def supports(
    claims: Sequence[Claim], passages: Sequence[Found], *, question: str = "", quotes: Sequence[str] = ()
) -> tuple[Support, ...]:
    """What the rules say of each claim of an answer, in their order; `likely` counts as supported.

    `passages` are those of the writer's prompt, the first of which is number 1; `quotes` what the writer copied. A
    claim without a mark is held against the passages that the answer's other claims cite and those that are quoted.
    """
    language = language_of_answer(question, claims)
    asked = read(question, language)
    elsewhere = cited_or_quoted(claims, passages, quotes)
    found = []
    for claim in claims:
        sources = read_sources([one.passage for one in passages], claim.marks or elsewhere)
        found.append(standing(read_claim(claim, language, sources), sources, asked, quotes))
    return tuple(found)


def read_claim(claim: Claim, language: str, sources: Sequence[Source]) -> Statement:
    """The claim as read in the answer's language, or in that of a passage from which it is nearly copied.

    A short text in a language that has near relatives is easily taken for one of theirs.
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
    """The language of an answer: told by all its claims, and its question, since a single claim is short."""
    return language_of(" ".join((question, *(claim.text for claim in claims))))


def cited_or_quoted(claims: Sequence[Claim], passages: Sequence[Found], quotes: Sequence[str]) -> tuple[int, ...]:
    """The numbers of the passages that a claim cites, then of those that are quoted, each once."""
    cited = [number for claim in claims for number in claim.marks]
    quoted = [
        number
        for number, found in enumerate(passages, start=1)
        if any(is_verbatim(quote, [found.passage.searchable()]) for quote in quotes)
    ]
    return tuple(dict.fromkeys((*cited, *quoted)))


def standing(claim: Statement, sources: Sequence[Source], question: Statement, quotes: Sequence[str] = ()) -> Support:
    """What the rules say of a claim that was read, held against passages that were."""
    if not sources:
        return Support(score=0.0, passage_id=None, supported=False, standing="refuted")
    if placed := next((source for source in sources if on_its_page(claim, source, question)), None):
        number, passage = placed.number, placed.passage.id
        return Support(score=1.0, passage_id=passage, number=number, supported=True, standing="supported")
    best: Support | None = None
    for source, sentences in _candidates(sources, quotes):
        found = _held_against(claim, source, sentences, sources, question)
        if best is None or _rank(found) > _rank(best):
            best = found
        if best.standing == "supported":
            return best
    nearest = best or Support(score=0.0, passage_id=sources[0].passage.id, number=sources[0].number, supported=False)
    missing = _missing(claim, sources, question)
    if missing and nearest.standing == "open":
        return replace(nearest, standing="refuted", missing=missing)
    return nearest


def _candidates(sources: Sequence[Source], quotes: Sequence[str]) -> Iterator[tuple[Source, tuple[Statement, ...]]]:
    """Single sentences; and those quoted, together, from which a figure may follow."""
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
    """Do they speak of it? A title gives no figure but a date: it is often numbered."""
    numbered = item.figure is not None and item.figure.date is None
    return any(one.holds(item) for one in (sentences if numbered else (*sentences, *titles)))


def _light(item: Item, claim: Statement) -> bool:
    return item.figure is None and item.stem in claim.grammar.light


def _explained(item: Item, follows: Sequence[Derived], claim: Statement, beside: Sequence[Statement]) -> bool:
    """Is it a figure that follows or that another sentence rounds; or a word that calls for the operation?"""
    if item.figure is not None:
        figures = [figure for one in beside for figure in one.figures]
        return any(one.written == item.figure.written for one in follows) or stands_in(item.figure, figures)
    return any(item.written.lower() in cues().get(one.operation, ()) for one in follows)


def _in_order(claim: Statement, sentence: Statement) -> bool:
    """Does the sentence say it in the claim's order, from the beginning of a clause, and leave out nothing but words?

    What it leaves out must not be a value or the end of a clause, and neither may deny anything.
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


def _missing(claim: Statement, sources: Sequence[Source], question: Statement) -> tuple[str, ...]:
    """Figures that no cited passage gives and that do not follow from any; names that none has."""
    statements = [statement for source in sources for statement in (*source.statements, source.title)]
    figures = [figure for statement in statements for figure in statement.figures]
    follows = {one.written for one in derived(claim, statements)}
    same_language = all(statement.language == claim.language for source in sources for statement in source.statements)
    found = []
    for item in claim.items:
        if item.figure is not None:
            known = stands_in(item.figure, figures) or item.figure.written in follows
            lacks = not known and not may_follow(item.figure, figures)
        else:
            lacks = item.is_name and same_language and not any(statement.holds(item) for statement in statements)
        if lacks and not question.holds(item):
            found.append(item.written)
    return tuple(found)

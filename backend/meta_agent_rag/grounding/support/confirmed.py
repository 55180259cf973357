"""Checks the critic's yes: do the words that it quoted occur in the passage, and can they support the claim?"""

from collections.abc import Sequence
from dataclasses import replace

from ...text.figures.arithmetic import calculations
from ...text.figures.figure import stands_in
from ..quotes import copied_sentence, is_verbatim
from ..vetoes import fault
from .deriving.derived import Vouched, derived
from .grounds import Grounds, share_held
from .pages import on_the_page_of, page_figures
from .sources import Source
from .statement import Item, Statement, read
from .verdict import Support

_PRONOUNS = frozenset({"he", "she", "it", "they", "his", "her", "its", "their", "this", "these", "there"})
_MOSTLY = 0.8
_FEWEST_WORDS = 4
_LONGEST_CALCULATION = 1000
_MOST_WORDS = 120
"""The most words that may be quoted: a quote of the whole passage pinpoints nothing."""


def confirmed(
    support: Support,
    claim: Statement,
    words: Sequence[str],
    sources: Sequence[Source],
    question: Statement,
    *,
    linked: Sequence[Source] = (),
    others: Sequence[Source] = (),
    quotes: Sequence[str] = (),
    calculation: str = "",
) -> Support:
    """The support of a claim that the critic accepted on these words; the fault says why it is rejected.

    `sources` are the passages that the claim cites, `linked` those connected with them, `others` the rest of the
    prompt. One of these counts if a part was copied from it that no cited passage contains; one of the rest, only if
    that part names or begins with something that the claim or a cited passage mentions: "He was born in Oslo" may be
    about anybody, and is left out. If the critic's words do not suffice, the writer's verbatim `quotes` are added,
    provided that the claim consists mostly of their words: a critic seldom copies everything that supports a claim.
    Without either, the rules' verdict is kept. `calculation` is how the critic says that the claim's figures follow.
    """
    parts = tuple(part for part in words if part.strip())
    if not parts or sum(len(part.split()) for part in parts) > _MOST_WORDS:
        return replace(support, supported=False, fault="the critic quoted no specific words of the passage")
    cited = {part: _in_passages(part, sources) for part in parts}
    beside = {part: _elsewhere(part, claim, sources, linked, others) for part in parts if cited[part] is None}
    used = [found[0] for found in beside.values() if found]
    sources = (*sources, *(one for one in (*linked, *others) if one in used))
    placed = {part: cited[part] or (found[1] if (found := beside.get(part)) else None) for part in parts}
    located = tuple(words for words in placed.values() if words is not None)
    invented = [part for part, words in placed.items() if words is None and not _in_passages(part, (*linked, *others))]
    copied = _copied_from(claim, quotes, sources)
    tried = [located] if located and not invented else []
    tried += [tuple(dict.fromkeys((*located, *copied)))] if copied else []
    if not tried:
        kept = support.standing == "likely"
        fault_ = None if kept else "the words that the critic quoted are not in the passage"
        return replace(support, supported=kept, fault=fault_)
    vouched = Vouched(
        question=question, passage=(), calculations=calculations(calculation[:_LONGEST_CALCULATION], claim.language)
    )
    judged = [_judged(support, claim, named, sources, vouched, beside=(*linked, *others)) for named in tried]
    return next((one for one in judged if one.supported), judged[0])


def _judged(
    support: Support,
    claim: Statement,
    named: tuple[str, ...],
    sources: Sequence[Source],
    vouched: Vouched,
    *,
    beside: Sequence[Source],
) -> Support:
    """The support of a claim by words that occur in the passages; `beside` are the rest of the prompt."""
    grounds = _grounds(claim, named, sources, vouched.question)
    follows = derived(claim, grounds.named, vouched=replace(vouched, passage=grounds.passage))
    prompted = tuple(one for source in beside for one in (source.title, *source.statements))
    given = [figure for one in grounds.sentences for figure in page_figures(one)]
    pages = [figure for figure in page_figures(claim) if not stands_in(figure, given)]
    placed, elsewhere = on_the_page_of(pages, named, sources)
    known = frozenset([*(one.written for one in follows), *(one.written for one in placed)])
    grounds = replace(grounds, follows=known, prompted=prompted)
    found = fault(grounds) or (f"the words are not on page {elsewhere[0].written}" if elsewhere else None)
    held = [one for one in sources if any(is_verbatim(part, [one.passage.searchable()]) for part in named)]
    return replace(
        support,
        supported=found is None,
        fault=found,
        words=named,
        derived=follows,
        number=held[0].number if held else support.number,
        passage_id=held[0].passage.id if held else support.passage_id,
        also=tuple(one.number for one in held[1:]),
    )


def _copied_from(claim: Statement, quotes: Sequence[str], sources: Sequence[Source]) -> tuple[str, ...]:
    """The quotes in these passages, if the claim consists mostly of their words; else none."""
    held = tuple(quote for quote in quotes if any(source.around(quote) for source in sources))
    sentences = tuple(sentence for quote in held for source in sources for sentence in source.around(quote))
    titles = tuple(source.title for source in sources)
    return held if held and share_held(claim.items, (*sentences, *titles)) >= _MOSTLY else ()


def _in_passages(part: str, sources: Sequence[Source]) -> str | None:
    if is_verbatim(part, [source.passage.searchable() for source in sources]):
        return part
    return copied_sentence(part, [source.passage.text for source in sources])


def _elsewhere(
    part: str, claim: Statement, sources: Sequence[Source], linked: Sequence[Source], others: Sequence[Source]
) -> tuple[Source, str] | None:
    """The passage from which a part was copied, and the part as it stands there; fragments say too little."""
    if len(part.split()) < _FEWEST_WORDS:
        return None
    for one in (*linked, *others):
        found = _in_passages(part, (one,))
        if found is not None and (one in linked or _is_about(one.around(found), claim, sources)):
            return one, found
    return None


def _is_about(sentences: Sequence[Statement], claim: Statement, sources: Sequence[Source]) -> bool:
    """Does the first sentence name or begin with what the claim or a source mentions, and not with a pronoun?"""
    words, items = (sentences[0].text.split(), sentences[0].items) if sentences else ([], ())
    if not words or not items or words[0].lower() in _PRONOUNS:
        return False
    about = (claim, *(statement for source in sources for statement in source.statements))
    return any(one.holds(item) for item in (items[0], *filter(_is_name, items)) for one in about)


def _is_name(item: Item) -> bool:
    return item.is_name or item.is_bare


def _grounds(claim: Statement, named: Sequence[str], sources: Sequence[Source], question: Statement) -> Grounds:
    sentences: dict[Statement, None] = {}
    parts: list[Statement] = []
    for part in named:
        around = [sentence for source in sources for sentence in source.around(part)]
        sentences |= dict.fromkeys(around)
        rows = [sentence for sentence in around if sentence.label]
        parts += rows or [read(part, around[0].language if around else "")]
    return Grounds(
        claim=claim,
        sentences=tuple(sentences),
        named=tuple(parts),
        passage=tuple(sentence for source in sources for sentence in source.statements),
        titles=tuple(source.title for source in sources),
        question=question,
    )

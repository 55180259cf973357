"""Checks the critic's yes: do the words that it quoted occur in the passage, and can they support the claim?"""

from collections.abc import Sequence
from dataclasses import replace

from ..quotes import is_verbatim
from ..vetoes import fault
from .derived import derived
from .grounds import Grounds
from .sources import Source
from .statement import Statement, read
from .verdict import Support

_MOST_WORDS = 120
"""The most words that may be quoted: a quote of the whole passage pinpoints nothing."""


def confirmed(
    support: Support, claim: Statement, words: Sequence[str], sources: Sequence[Source], question: Statement
) -> Support:
    """The support of a claim that the critic accepted on these words; the fault says why it is rejected."""
    named = tuple(part for part in words if part.strip())
    if not named or sum(len(part.split()) for part in named) > _MOST_WORDS:
        return replace(support, supported=False, fault="the critic quoted no specific words of the passage")
    if not all(any(is_verbatim(part, [source.passage.searchable()]) for source in sources) for part in named):
        return replace(support, supported=False, fault="the words that the critic quoted are not in the passage")
    grounds = _grounds(claim, named, sources, question)
    follows = derived(claim, grounds.named)
    grounds = replace(grounds, follows=frozenset(one.written for one in follows))
    found = fault(grounds) or _beside_the_point(grounds)
    number = next(
        (one for one in sources if any(is_verbatim(part, [one.passage.searchable()]) for part in named)), None
    )
    return replace(
        support,
        supported=found is None,
        fault=found,
        words=named,
        derived=follows,
        number=support.number if number is None else number.number,
        passage_id=support.passage_id if number is None else number.passage.id,
    )


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


def _beside_the_point(grounds: Grounds) -> str | None:
    """In one language, the words and the claim must have something in common."""
    if not grounds.same_language or not grounds.claim.items:
        return None
    held = any(statement.holds(item) for item in grounds.claim.items for statement in grounds.around())
    return None if held or grounds.follows else "the words that the critic quoted share nothing with the claim"

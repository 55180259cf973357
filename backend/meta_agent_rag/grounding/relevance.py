"""Does an answer address its question? A true sentence about something else does not."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..retrieval.passage import Passage
from ..text.language import language_of
from ..text.normalise import normalised, tokens
from .claims import Claim
from .support.grounds import share_held
from .support.sources import Source, read_sources
from .support.statement import Item, Statement, read
from .support.verdict import Support
from .support.words import asking, openers

_SCANT = 1
"""The number of items up to which a claim states nothing without its question."""
_SHARED = 2


def asked_about(question: str) -> tuple[Item, ...]:
    """The subject of a question, without the words that only ask ("which year")."""
    statement = read(question)
    return tuple(item for item in statement.items if item.stem not in asking(statement.language))


def speaks_of(question: str, sources: Sequence[Statement]) -> bool:
    """Do the sources contain every name of a question or, if it has none, two of the things that it mentions, or all?

    A question in another language than the sources is not judged.

    >>> speaks_of("Is Mira Holt a director?", [read("Mira Holt directed it.")])
    True
    """
    items = asked_about(question)
    if sources and all(source.language != language_of(question) for source in sources):
        return True
    if named := tuple(item for item in items if item.is_name):
        return share_held(named, tuple(sources)) == 1.0
    held = sum(any(source.holds(item) for source in sources) for item in items)
    return held >= min(_SHARED, len(items))


def is_connected(question: str, cited: Collection[int], passages: Sequence[Passage]) -> bool:
    """Is a cited passage connected with a name of the question: directly, or through another passage of the prompt?

    Two passages are connected if one mentions the other's title, or if they are of the same document. `passages` are
    those of the prompt, numbered from 1. True if the question mentions no name, or is in another language.
    """
    named = [item for item in asked_about(question) if item.is_name]
    own = read_sources(passages, cited)
    if not named or any(_mentions_one(source, named) for source in own):
        return True
    sources = read_sources(passages, range(1, len(passages) + 1))
    if all(source.title.language != language_of(question) for source in sources):
        return True
    near = [source for source in sources if _mentions_one(source, named)]
    return any(
        one.passage.doc_id == other.passage.doc_id or _mentions(one, other) or _mentions(other, one)
        for one in own
        for other in near
    )


def _mentions_one(source: Source, named: Sequence[Item]) -> bool:
    return any(statement.holds(item) for item in named for statement in (source.title, *source.statements))


def _mentions(source: Source, other: Source) -> bool:
    """Does a sentence contain the other's title, apart from what the title adds in brackets?"""
    title = read(other.passage.title.partition(" (")[0], other.title.language)
    return bool(title.items) and any(all(said.holds(item) for item in title.items) for said in source.statements)


def is_settled(
    question: str, claims: Sequence[Claim], support: Sequence[Support], sources: Sequence[Statement]
) -> bool:
    """Do the supported claims and their passages cover everything in the question, so that the critic is not needed?"""
    said = tuple(read(claim.text) for claim, found in zip(claims, support, strict=True) if found.supported)
    return share_held(asked_about(question), (*said, *sources)) == 1.0


def on_the_question(
    question: str, claims: Sequence[Claim], support: Sequence[Support], sources: Sequence[Statement]
) -> tuple[Support, ...]:
    """The support, excluding claims that say next to nothing if the passages do not mention the question's subject.

    `sources` are the sentences that the answer quotes, and all of the passages that it cites.
    """
    if speaks_of(question, sources):
        return tuple(support)
    return tuple(
        replace(found, supported=found.supported and len(read(claim.text).items) > _SCANT)
        for claim, found in zip(claims, support, strict=True)
    )


def holds_the_answer(
    question: str,
    short_answer: str,
    claims: Sequence[Claim],
    support: Sequence[Support],
    sources: Sequence[Statement],
    *,
    answers: bool | None = None,
) -> bool:
    """Is a claim that gives the short answer supported, among those that contain most of it?

    If no claim contains any of it, it must occur in the sources, the passages quoted or cited. A verdict ("no") may
    also follow from other claims ("They were built by different yards.") if the sources mention the question's subject,
    or if the critic found that the claims answer it (`answers`).
    """
    supported = [found.supported for found in support]
    language = language_of(" ".join(claim.text for claim in claims))
    wanted = read(short_answer, language).items
    if not wanted or normalised(short_answer) in openers():
        given = any(
            found and tokens(short_answer) <= tokens(claim.text) for claim, found in zip(claims, supported, strict=True)
        )
        return given or (any(supported) and (bool(answers) or speaks_of(question, sources)))
    said = [read(claim.text, language) for claim in claims]
    shared = [sum(statement.holds(item) for item in wanted) for statement in said]
    most = max(shared, default=0)
    if most:
        return any(found for held, found in zip(shared, supported, strict=True) if held == most)
    return any(supported) and any(source.holds(item) for item in wanted for source in sources)

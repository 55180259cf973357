"""Does an answer address its question? A true sentence about something else does not."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from ..retrieval.passage import Passage
from ..text.language import language_of
from ..text.names import words
from ..text.normalise import normalised, tokens
from .claims import Claim
from .support.grounds import share_held
from .support.neighbours import connects, words_of
from .support.statement import Item, Statement, read
from .support.verdict import Support
from .support.words import asking, openers

_FULL_NAME = re.compile(
    r"(?:(?<=\s)|(?<=[\"(]))(?P<article>(?:[Tt]he|[Aa]n?)\s+)?(?P<name>[A-Z\u00c0-\u00de][\w'\u2019-]+(?:\s+[A-Z\u00c0-\u00de][\w'\u2019-]+)+)"
)
_CAPITAL = re.compile(r"\W*[A-Z\u00c0-\u00de]")
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
    """If the question has a full name, is a cited passage connected with a name in it, directly or through others?

    Two passages are connected if one mentions the other's title, or if they are of the same document. `passages` are
    those of the prompt, numbered from 1. A full name has two capitalised words or more and no article before it: what a
    single one names ("Acme", "PTO", "Sunday") is often implied by the documents. True without one, and for a question
    in another language or in German, where every noun is capitalised.
    """
    names = _names_beside_a_full_one(question)
    language = language_of(question)
    own = [passages[number - 1] for number in cited if 1 <= number <= len(passages)]
    if not names or language == "de" or any(language_of(one.text) != language for one in own):
        return True
    reached = [one for one in passages if names & words_of(one)]
    waiting = [one for one in passages if one not in reached]
    for one in reached:  # grows while it is walked through
        joined = [other for other in waiting if connects(one, other)]
        reached += joined
        waiting = [other for other in waiting if other not in joined]
    return any(one in reached for one in own)


def _names_beside_a_full_one(question: str) -> frozenset[str]:
    """The capitalised words of a question after its first, without accents; empty if it has no full name."""
    if question.isupper() or all(found["article"] for found in _FULL_NAME.finditer(question)):
        return frozenset()
    capitalised = " ".join(word for word in question.split()[1:] if _CAPITAL.match(word))
    return frozenset(word for word in words(capitalised) if len(word) > 1)


def is_settled(question: str, claims: Sequence[Claim], support: Sequence[Support], titles: Sequence[Statement]) -> bool:
    """Do the supported claims and their passages' titles cover everything in the question?

    If so, the critic is not needed. The passages' sentences do not count: they may say something else about the rest.
    """
    said = tuple(read(claim.text) for claim, found in zip(claims, support, strict=True) if found.supported)
    return share_held(asked_about(question), (*said, *titles)) == 1.0


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
    if all(supported) and answers and not any(item.is_value for item in wanted):
        return True  # in other words than the claims
    return any(supported) and any(source.holds(item) for item in wanted for source in sources)

"""Does what is supported bear on what was asked? Beside the support of each claim by itself.

A passage about something else may be quoted to the letter, and supports whatever says next to nothing ("Yes.",
"Eight."), or a sentence that was copied to stand beside an answer from memory.
"""

from collections.abc import Sequence
from dataclasses import replace

from ..text.normalise import tokens
from .claims import Claim
from .matching import content_words, names
from .support import Support

_SCANT = 1
"""Content words up to which a claim states nothing without its question."""
_SHARED = 2


def speaks_of(question: str, source: str) -> bool:
    """Does a text hold every name of a question; where it has none, two of its content words, or all?

    >>> speaks_of("Is Mira Holt a director?", "Mira Holt directed it."), speaks_of("Is the earth flat?", "A flat roof.")
    (True, False)
    """
    if named := names(question):
        words = tokens(source)
        return not any(words.isdisjoint({name, name.removesuffix("s"), f"{name}s"}) for name in named)
    wanted = content_words(question)
    return len(wanted & content_words(source)) >= min(_SHARED, len(wanted))


def on_the_question(
    question: str, claims: Sequence[Claim], support: Sequence[Support], source: str
) -> tuple[Support, ...]:
    """The support, without that of claims that say next to nothing where the passages do not speak of the question.

    `source` is the text of all passages that the answer quotes or cites.
    """
    if speaks_of(question, source):
        return tuple(support)
    return tuple(
        replace(found, supported=found.supported and len(content_words(claim.text)) > _SCANT)
        for claim, found in zip(claims, support, strict=True)
    )


def holds_the_answer(
    question: str, short_answer: str, claims: Sequence[Claim], support: Sequence[Support], source: str
) -> bool:
    """Is a claim supported that gives the short answer, of those that hold most of its words?

    Where no claim holds any of them, one must occur in `source`, the passages quoted or cited. A verdict ("no") may
    also follow from other claims ("They were built by different yards."), where `source` speaks of the question.
    """
    wanted, said = content_words(short_answer), tokens(short_answer)
    shared = [len(wanted & content_words(claim.text)) if wanted else said <= tokens(claim.text) for claim in claims]
    most = max(shared, default=0)
    given = any(found.supported for held, found in zip(shared, support, strict=True) if held == most)
    if not wanted:
        return bool(most and given) or speaks_of(question, source)
    return given if most else bool(wanted & content_words(source))

"""Which passages belong together: those of one document, and those that mention each other's titles."""

from collections.abc import Collection, Sequence
from functools import lru_cache

from ...retrieval.passage import Passage
from ...text.names import words


def connects(one: Passage, other: Passage) -> bool:
    """Are both of one document, or does one mention the other's title?"""
    titles = (_title(one), _title(other))
    texts = (words_of(other), words_of(one))
    return one.doc_id == other.doc_id or any(title and title <= held for title, held in zip(titles, texts, strict=True))


def neighbours(claim: str, cited: Collection[int], passages: Sequence[Passage]) -> tuple[int, ...]:
    """The 1-based numbers of passages that a claim does not cite, but names by title, or that connect with a cited one.

    >>> film, life = (Passage(id=one, doc_id=one, title=one, text="It is by Ann Bell.") for one in ("Tide", "Ann Bell"))
    >>> neighbours("The director of Tide was born in Oslo.", [1], [film, life])
    (2,)
    """
    said = frozenset(words(claim))
    own = [passages[number - 1] for number in cited if 1 <= number <= len(passages)]
    return tuple(
        number
        for number, one in enumerate(passages, start=1)
        if number not in cited and ((_title(one) and _title(one) <= said) or any(connects(one, other) for other in own))
    )


@lru_cache(maxsize=512)
def words_of(passage: Passage) -> frozenset[str]:
    """The words of a passage with its title and section, without case and accents."""
    return frozenset(words(f"{passage.title} {passage.section or ''} {passage.text}"))


@lru_cache(maxsize=512)
def _title(passage: Passage) -> frozenset[str]:
    return frozenset(words(passage.title.partition(" (")[0]))

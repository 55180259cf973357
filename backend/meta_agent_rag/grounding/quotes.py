"""Are a draft's quotes really in the evidence?"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from ..text.normalise import as_quoted


def is_verbatim(quote: str, texts: Iterable[str]) -> bool:
    """Does the quote stand in one of the texts, white space and typographic marks aside?

    A full stop that the writer added at the end is forgiven.
    """
    wanted = _core(quote)
    return bool(wanted) and any(wanted in as_quoted(whole) for whole in texts)


def verbatim_share(quotes: Sequence[str], texts: Sequence[str]) -> float | None:
    """Share of the quotes that occur verbatim in the texts, 0..1; `None` where nothing was quoted."""
    if not quotes:
        return None
    return sum(is_verbatim(quote, texts) for quote in quotes) / len(quotes)


def place(quote: str, text: str) -> tuple[int, int] | None:
    """(start, end) of the first place in `text` where the quote stands, by the rule of `is_verbatim`.

    `None` where it does not stand there, or where its characters cannot be told apart in the text.
    """
    wanted = _core(quote)
    plain, places = _with_places(text)
    found = plain.find(wanted) if wanted else -1
    return None if found < 0 else (places[found][0], places[found + len(wanted) - 1][1])


def _core(quote: str) -> str:
    return as_quoted(quote).strip('" ').rstrip('." ')


@lru_cache(maxsize=64)
def _with_places(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """What `as_quoted` makes of a text, and where in the text each of its characters comes from."""
    plain: list[str] = []
    places: list[tuple[int, int]] = []
    for start, end in _clusters(text):
        # the letter keeps what would be stripped from a text by itself, and what would be joined to its neighbour
        for character in as_quoted(f"x{text[start:end]}x")[1:-1]:
            if character != " " or (plain and plain[-1] != " "):
                plain.append(character)
                places.append((start, end))
    return "".join(plain), tuple(places)


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Each character with the marks that combine with it."""
    start = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or not unicodedata.combining(text[index]):
            yield start, index
            start = index

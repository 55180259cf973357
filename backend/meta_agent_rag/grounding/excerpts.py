"""Cuts an excerpt of whole words around a place in a text."""

import re

SHORTEST = 30
LONGEST = 50
"""Words of an excerpt, where the text has so many."""
_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"[.!?][\"')\]\u2019\u201d]*$")


def excerpt(text: str, start: int, end: int) -> tuple[int, int]:
    """(start, end) of an excerpt of 30 to 50 words around `text[start:end]`; less only where the text has less.

    What is longer is cut at its end. What is shorter grows by the words that follow, then by those before; where
    a sentence ends within the 50 words, it is not broken off.
    """
    words = [match.span() for match in _WORD.finditer(text)]
    if not words:
        return 0, 0
    first = next((index for index, (_, stop) in enumerate(words) if stop > start), len(words) - 1)
    last = next((index for index in range(len(words) - 1, first, -1) if words[index][0] < end), first)
    last = min(last, first + LONGEST - 1)
    last = max(last, min(first + SHORTEST, len(words)) - 1)
    first = min(first, max(0, last - SHORTEST + 1))
    closing = range(last, min(first + LONGEST, len(words)))
    last = next((index for index in closing if _SENTENCE_END.search(text, *words[index])), last)
    return words[first][0], words[last][1]

"""Finds the phrases of `leakage.yaml`, by which an answer goes beyond its documents.

A phrase that a verified quote contains is the document's.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import yaml

from ..text.normalise import unmarked


def leaks(answer: str, verified_quotes: Sequence[str]) -> tuple[str, ...]:
    """The phrases in the answer but in none of the quotes, without duplicates, in order of first occurrence.

    Matches whole words; case, white space, emphasis and typographic marks are ignored.

    >>> leaks("Based on my knowledge, he left.", [])
    ('based on my knowledge',)
    >>> leaks("He left, in the novel, by sea.", ["left, in the novel, by sea"])
    ()
    """
    listed = {unmarked(phrase): phrase for phrase in general_phrases()}
    # the longest phrase at each word, including overlapping phrases
    longest_first = "|".join(map(re.escape, sorted(listed, key=len, reverse=True)))
    pattern = re.compile(rf"(?<!\w)(?<!\w-)(?=({longest_first})(?!\w|-\w))")
    quoted = {match[1] for quote in verified_quotes for match in pattern.finditer(unmarked(quote))}
    found = dict.fromkeys(match[1] for match in pattern.finditer(unmarked(answer)))
    return tuple(listed[plain] for plain in found if plain not in quoted)


@cache
def general_phrases() -> tuple[str, ...]:
    """The phrases of `leakage.yaml`, in order."""
    return tuple(yaml.safe_load(files(__package__).joinpath("leakage.yaml").read_text("utf-8")))

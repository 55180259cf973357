"""Phrases by which an answer abstains or goes beyond its documents, and the reasons why one is withheld."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import yaml

from ..text.normalise import normalised, unmarked


def is_abstention(answer: str) -> bool:
    """Whether the answer as a whole says that it was not found; true for an empty one.

    >>> is_abstention("NOT FOUND."), is_abstention("Not stated in the passages."), is_abstention("not found guilty")
    (True, True, False)
    """
    whole = normalised(answer)
    if not whole or whole in _abstentions():
        return True
    rows, said = _rows("abstention_patterns.yaml"), whole.split()
    if len(said) > rows["longest"] or not set(said).isdisjoint(rows["but"]):
        return False
    return any(re.fullmatch(pattern, whole) for pattern in rows["patterns"])


def states_unknown(texts: Iterable[str]) -> bool:
    """Whether one of the texts says itself that something is not known or not decided.

    >>> states_unknown(["The date of the reopening has not yet been decided."]), states_unknown(["It opens in May."])
    (True, False)
    """
    patterns = [pattern for rows in _rows("unknowns.yaml").values() for pattern in rows]
    return any(re.search(pattern, text, re.IGNORECASE) for text in texts for pattern in patterns)


def leaks(answer: str, verified_quotes: Sequence[str]) -> tuple[str, ...]:
    """The phrases of `leakage.yaml` in the answer but in none of the quotes, in order of first occurrence.

    Matches whole words; case, white space, emphasis and typographic marks are ignored.

    >>> leaks("Based on my knowledge, he left.", [])
    ('based on my knowledge',)
    >>> leaks("He left, in the novel, by sea.", ["left, in the novel, by sea"])
    ()
    """
    listed = {unmarked(phrase): phrase for phrase in _rows("leakage.yaml")}
    # the longest phrase at each word, including overlapping phrases
    longest_first = "|".join(map(re.escape, sorted(listed, key=len, reverse=True)))
    pattern = re.compile(rf"(?<!\w)(?<!\w-)(?=({longest_first})(?!\w|-\w))")
    quoted = {match[1] for quote in verified_quotes for match in pattern.finditer(unmarked(quote))}
    found = dict.fromkeys(match[1] for match in pattern.finditer(unmarked(answer)))
    return tuple(listed[plain] for plain in found if plain not in quoted)


@cache
def _abstentions() -> frozenset[str]:
    return frozenset(normalised(str(phrase)) for phrase in _rows("abstention.yaml"))


@cache
def _rows(name: str) -> Any:
    return yaml.safe_load(files(__package__).joinpath(name).read_text(encoding="utf-8"))


Reason: TypeAlias = Literal[
    "no_evidence",
    "screened",
    "not_found",
    "invented_quotes",
    "leakage",
    "unsupported",
    "off_question",
    "not_covered",
]
"""Why an answer is not shown, in the order of the checks."""


def refusal(reason: Reason) -> str:
    """The text in `refusals.yaml` for that reason."""
    return str(_rows("refusals.yaml")[reason])

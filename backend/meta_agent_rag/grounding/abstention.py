"""Distinguishes an abstention from an answer, and gives the reason why an answer is withheld."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias, get_args

import yaml

from ..text.normalise import normalised


@cache
def _abstentions() -> frozenset[str]:
    return frozenset(normalised(str(phrase)) for phrase in _rows("abstention.yaml"))


def is_abstention(answer: str) -> bool:
    """Does the answer as a whole say that it was not found? True for an empty one.

    >>> is_abstention("NOT FOUND."), is_abstention("Not stated in the passages."), is_abstention("not found guilty")
    (True, True, False)
    """
    whole = normalised(answer)
    return not whole or whole in _abstentions() or _says_so(whole)


def states_unknown(texts: Iterable[str]) -> bool:
    """Does one of the texts say itself that something is not known or not decided?

    >>> states_unknown(["The date of the reopening has not yet been decided."]), states_unknown(["It opens in May."])
    (True, False)
    """
    return any(pattern.search(text) for text in texts for pattern in _unknowns())


@cache
def _unknowns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, re.IGNORECASE) for rows in _rows("unknowns.yaml").values() for text in rows)


def _says_so(whole: str) -> bool:
    rows = _rows("abstention_patterns.yaml")
    words = whole.split()
    if len(words) > rows["longest"] or not set(words).isdisjoint(rows["but"]):
        return False
    return any(pattern.fullmatch(whole) for pattern in _patterns())


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text) for text in _rows("abstention_patterns.yaml")["patterns"])


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

REASONS: tuple[Reason, ...] = get_args(Reason)


def refusal(reason: Reason) -> str:
    """The text in `refusals.yaml` for that reason."""
    texts: Mapping[str, str] = _rows("refusals.yaml")
    return texts[reason]

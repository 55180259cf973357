"""Distinguishes an abstention from an answer, and gives the reason why an answer is withheld."""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import yaml

from ..text.normalise import normalised


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

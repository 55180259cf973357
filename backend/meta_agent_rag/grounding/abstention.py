"""Tells an abstention from an answer, and says why an answer is withheld."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias, get_args

import yaml

from ..text.normalise import normalised


@cache
def _abstentions() -> frozenset[str]:
    phrases = yaml.safe_load(files(__package__).joinpath("abstention.yaml").read_text(encoding="utf-8"))
    return frozenset(normalised(str(phrase)) for phrase in phrases)


def is_abstention(short_answer: str) -> bool:
    """Does the answer as a whole say that it was not found? An empty one does.

    >>> is_abstention("NOT FOUND."), is_abstention("not found guilty")
    (True, False)
    """
    whole = normalised(short_answer)
    return not whole or whole in _abstentions()


Reason: TypeAlias = Literal["no_evidence", "not_found", "invented_quotes", "leakage", "unsupported", "not_covered"]
"""Why an answer is not shown, in the order in which it is looked for."""

REASONS: tuple[Reason, ...] = get_args(Reason)


def refusal(reason: Reason) -> str:
    """The text of `refusals.yaml` for that reason."""
    return _refusals()[reason]


@cache
def _refusals() -> Mapping[str, str]:
    texts: Mapping[str, str] = yaml.safe_load(files(__package__).joinpath("refusals.yaml").read_text(encoding="utf-8"))
    return texts

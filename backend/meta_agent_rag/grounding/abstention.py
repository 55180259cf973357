"""Tells an abstention from an answer."""

from functools import cache
from importlib.resources import files

import yaml

from ..text.normalise import normalised


@cache
def _abstentions() -> frozenset[str]:
    phrases = yaml.safe_load(files(__package__).joinpath("abstention.yaml").read_text(encoding="utf-8"))
    return frozenset(normalised(str(phrase)) for phrase in phrases)


def is_abstention(short_answer: str) -> bool:
    """Does the answer as a whole say that there is none? An empty one does.

    >>> is_abstention("NOT FOUND."), is_abstention("not found guilty")
    (True, False)
    """
    whole = normalised(short_answer)
    return not whole or whole in _abstentions()

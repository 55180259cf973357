"""Yes-or-no questions and values."""

import re

from ...grounding.answer_kind import kind_asked
from ...text.normalise import normalised


def asks_yes_or_no(question: str) -> str | None:
    """The fault of a plan whose operator answers yes or no although the question does not ask for that."""
    return None if kind_asked(question) == "verdict" else "the question does not ask for a yes or no"


_CLOSED = re.compile(r"\s*(?:is|are|was|were|do|does|did|has|have|had|can)\b(?!.*\bor\b)", re.IGNORECASE)


def is_closed(fact: str) -> bool:
    """Is a fact a yes-or-no question? Facts are short English questions, so their first word decides.

    >>> is_closed("Is Salt Road a film?"), is_closed("Who directed Salt Road?")
    (True, False)
    """
    return bool(_CLOSED.match(fact))


def verdict(value: str) -> bool | None:
    """A value as a yes or no; `None` if it is neither.

    >>> verdict("Yes, it is."), verdict("Norway")
    (True, None)
    """
    said = normalised(value).split()
    return {"yes": True, "no": False}.get(said[0]) if said else None

"""Questions for a yes or no, and values that are one."""

from ...grounding.answer_kind import kind_asked
from ...text.normalise import normalised


def asks_yes_or_no(question: str) -> str | None:
    """The fault of a plan whose operator gives a yes or no to a question that does not ask for one."""
    return None if kind_asked(question) == "verdict" else "the question does not ask for a yes or no"


def verdict(value: str) -> bool | None:
    """A value as a yes or no; `None` where it is neither.

    >>> verdict("Yes, it is."), verdict("Norway")
    (True, None)
    """
    said = normalised(value).split()
    return {"yes": True, "no": False}.get(said[0]) if said else None

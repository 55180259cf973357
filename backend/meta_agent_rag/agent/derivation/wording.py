"""What the words of a question say about its plan: the direction of a comparison, and birth or death."""

import re
from collections.abc import Mapping, Sequence

_DIRECTIONS: Mapping[str, re.Pattern[str]] = {
    "earliest": re.compile(
        r"\b(?:older|elder|oldest|eldest|earlie(?:r|st)|first|before)\b(?!\s+(?:season|episode|album|edition|single|book))",
        re.IGNORECASE,
    ),
    "latest": re.compile(
        r"\b(?:younger|youngest|later|latest|newer|newest|(?:more|most)\s+recent(?:ly)?)\b", re.IGNORECASE
    ),
}
_LIFE: Mapping[str, re.Pattern[str]] = {
    "birth": re.compile(r"\b(?:born|birth\w*|older|elder|oldest|eldest|younger|youngest)\b", re.IGNORECASE),
    "death": re.compile(r"\b(?:die[sd]?|dead|death|dying|killed|buried|burial)\b", re.IGNORECASE),
}
_KIN: Mapping[str, re.Pattern[str]] = {
    "female": re.compile(r"\b(?:grand)?mother\b|\bmaternal\b", re.IGNORECASE),
    "male": re.compile(r"\b(?:grand)?father\b|\bpaternal\b", re.IGNORECASE),
}


def direction(question: str) -> str | None:
    """`earliest` or `latest`, where the question's words say one of them and not the other.

    >>> direction("Which film has the director who is older, A or B?"), direction("Who won more games, A or B?")
    ('earliest', None)
    """
    said = [name for name, words in _DIRECTIONS.items() if words.search(question)]
    return said[0] if len(said) == 1 else None


def strays(question: str, facts: Sequence[str]) -> str | None:
    """What the facts ask for that the question does not: a death for a birth, a mother for a father."""
    asked = " ".join(facts)
    for families in (_LIFE, _KIN):
        wanted = {name for name, words in families.items() if words.search(question)}
        found = {name for name, words in families.items() if words.search(asked)}
        if wanted and found and found - wanted:
            return f"the question asks for {_listed(wanted)}, and the facts for {_listed(found)}"
    return None


def _listed(families: set[str]) -> str:
    return " and ".join(sorted(families))

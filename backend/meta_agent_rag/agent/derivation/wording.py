"""What a question's wording says about its plan: the direction of a comparison, and birth or death."""

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
_LIVES = re.compile(r"\b(?:age|aged|lived?|lifespan|old|when|year|date|where|from|native|home\w*)\b", re.IGNORECASE)
"""Words of questions that may be about a birth or a death without naming it."""
_KIN: Mapping[str, re.Pattern[str]] = {
    "female": re.compile(r"\b(?:grand)?mother\b|\bmaternal\b", re.IGNORECASE),
    "male": re.compile(r"\b(?:grand)?father\b|\bpaternal\b", re.IGNORECASE),
}


def direction(question: str) -> str | None:
    """`earliest` or `latest`, if the question's wording says only one of them.

    >>> direction("Which film has the director who is older, A or B?"), direction("Who won more games, A or B?")
    ('earliest', None)
    """
    said = [name for name, words in _DIRECTIONS.items() if words.search(question)]
    return said[0] if len(said) == 1 else None


def other_choice(question: str, one: str) -> str | None:
    """The other of two things that the question offers as a choice; `None` if `one` is neither of them.

    >>> other_choice("Which band was formed first, Red Moth or The Vales?", "Red Moth")
    'The Vales'
    >>> other_choice("Which band was formed first, Red Moth or The Vales?", "The Vales")
    'Red Moth'
    """
    named = re.escape(one.strip())
    if not named:
        return None
    after = re.search(rf"\b{named}\s+or\s+(?P<other>[^?,;]+)", question, re.IGNORECASE)
    before = re.search(rf"(?:^|[,:;?]|\bbetween\b|\bof\b)(?P<other>[^,:;?]+?)\s+or\s+{named}", question, re.IGNORECASE)
    found = after or before
    return found["other"].strip() or None if found else None


_DIED = re.compile(r"^(when|where) did (.+) die\?$", re.IGNORECASE)
_BORN = re.compile(r"^(when|where) was (.+) born\?$", re.IGNORECASE)
_PARENTS = {"male": ("mother", "father"), "female": ("father", "mother")}


def mended(question: str, fact: str) -> str:
    """The fact, changed to ask for what the question asks for, if the two can be exchanged word for word.

    A death becomes a birth if the question is about births alone; likewise a mother becomes a father.

    >>> mended("Which film has the director who is older, A or B?", "When did # die?")
    'When was # born?'
    """
    if _said(_LIFE, question) == {"birth"}:
        fact = _DIED.sub(r"\1 was \2 born?", fact)
    elif _said(_LIFE, question) == {"death"}:
        fact = _BORN.sub(r"\1 did \2 die?", fact)
    kin = _said(_KIN, question)
    if len(kin) == 1:
        wrong, right = _PARENTS[next(iter(kin))]
        fact = re.sub(rf"\b{wrong}\b", right, fact)
    return fact


def _said(families: Mapping[str, re.Pattern[str]], text: str) -> set[str]:
    return {name for name, words in families.items() if words.search(text)}


def strays(question: str, facts: Sequence[str]) -> str | None:
    """What the facts ask for but the question does not: a death instead of a birth, a mother instead of a father."""
    asked = " ".join(facts)
    if _said(_LIFE, asked) and not _said(_LIFE, question) and not _LIVES.search(question):
        return "the facts ask for a birth or a death, and the question for neither"
    for families in (_LIFE, _KIN):
        wanted, found = _said(families, question), _said(families, asked)
        if wanted and found and found - wanted:
            return f"the question asks for {_listed(wanted)}, and the facts for {_listed(found)}"
    return None


def _listed(families: set[str]) -> str:
    return " and ".join(sorted(families))

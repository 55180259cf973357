"""The kind of answer that an English question asks for, judged by its wording, and whether an answer is of that kind.

Only what the wording settles is judged: a question in another language, or one that allows several kinds of answer,
has no kind. Developed on the first 150 questions of a file of HotpotQA, 100 of 2WikiMultiHopQA, and 80 of
MuSiQue, whose gold answers all pass; tests/unit/test_grounding_answer_kind.py holds cases of each.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

import yaml

from ..text.normalise import as_quoted, normalised

Kind: TypeAlias = Literal["verdict", "choice", "date", "number"]

_HELPER = r"(?:is|are|was|were|do|does|did|has|have|had)"
_ENGLISH = re.compile(r"\b(?:the|of|and|both|from|by|same|to|than|which|who|that)\b", re.IGNORECASE)
_ENDS_IN_OR = r"""\bor\s+(?:(?:the|a|an)\s+(?:[a-z]+\s+)?)?["']?[A-Z0-9][^?]*\?\s*$"""
_OR = re.compile(_ENDS_IN_OR)
_APART = re.compile(
    rf"[,:;-]\s(?!or\b)(?![^?]*\b(?:as|called|named|titled|who|what|which|{_HELPER})\b[^?]*\bor\b)[^?]*{_ENDS_IN_OR}"
)
_ASKS_OTHERWISE = re.compile(r"(?:how|when|(?:in|on|by|since|until)\s+(?:what|which)\s+\w+)\b", re.IGNORECASE)
_COMPARED = re.compile(
    r"(?<!\bthe )\b(?:first|last|earli(?:er|est)|lat(?:er|est)|old(?:er|est)|young(?:er|est)|long(?:er|est)"
    r"|larg(?:er|est)|bigg(?:er|est)|small(?:er|est)|high(?:er|est)|tall(?:er|est)|clos(?:er|est)|more|most|fewer|less|least)\b",
    re.IGNORECASE,
)
_EITHER = re.compile(r"\bor\b", re.IGNORECASE)
_VERDICT = re.compile(rf"{_HELPER}\b(?!\s+you\b)", re.IGNORECASE)
_TIME_FOLLOWS = rf"(?:\s+(?:{_HELPER}|will|would|of|in|on|that)\b|\s*\?)"
_MODAL = re.compile(
    r"(?i:can|could|must|shall|should|would)\s+(?!(?i:you|i|we)\b)|(?i:may|might|will)\s+(?!(?i:you|i|we)\b)(?=[a-z])"
)
_DATE = re.compile(
    r"^when\s+(?:was|were|did|has|have|had)\b"  # an office opens at noon
    rf"|\b(?:what|which)\s+(?:exact\s+)?(?:year|date|month(?!\s+of)|decade|century){_TIME_FOLLOWS}"
    rf"|\b(?:on|until|since|by)\s+(?:what|which)\s+day{_TIME_FOLLOWS}"
    r"|^what(?:\s+(?:is|was)|'s)\s+(?:the\s+|[^?]*'s\s+)?(?:date\s+of\s+(?:birth|death)\b|birthday(?=\s*\?|\s+of\b))",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\bhow\s+(?:many|old|tall)\b", re.IGNORECASE)
_OPEN = re.compile(r"\b(?:who|whom|whose|what|which|where|when|how|why)\b", re.IGNORECASE)
_WHO_OR_WHERE = re.compile(
    r"(?:who|whom|whose|where)\b|what\s+(?:is|was)\s+the\s+(?:place|country|nationality|name)\b", re.IGNORECASE
)


def kind_asked(question: str) -> Kind | None:
    """The kind of answer, if the question's wording settles it: a yes or no, one of two things that it names, a date
    or year, a number.

    >>> kind_asked("Who was born first, Ada Roth or Bo Lind?"), kind_asked("Was Ada Roth the sister of Bo Lind?")
    ('choice', 'verdict')
    >>> kind_asked("In which year did the director of Salt Road die?"), kind_asked("Who directed Salt Road?")
    ('date', None)
    """
    asked = as_quoted(question)
    closed = _VERDICT.match(asked)
    named = _OR.search(asked) and not _ASKS_OTHERWISE.match(asked)  # a title may contain "or"
    if named and (_COMPARED.search(asked) or (_APART.search(asked) and not closed)):
        return "choice"
    if closed:  # with "or", the answer may be both things, neither, or yes; "Was ist ...?" is German
        return "verdict" if _ENGLISH.search(asked) and not _EITHER.search(asked) else None
    if _DATE.search(asked):
        return "date"
    return "number" if _NUMBER.search(asked) else None


def of_kind(question: str, short_answer: str) -> bool | None:
    """Whether the answer is of the kind that the question asks for; `None` if the question's wording does not say.

    >>> of_kind("Who was born first, Ada Roth or Bo Lind?", "1931"), of_kind("Who directed Salt Road?", "yes")
    (False, False)
    """
    said = normalised(short_answer).split()
    kind, asked = kind_asked(question), as_quoted(question)
    if kind == "verdict":
        return said[:1] in (["yes"], ["no"])
    if said in (["yes"], ["no"]):
        return False if kind or (_OPEN.search(question) and not _MODAL.match(asked)) else None
    if kind == "choice":
        return not set(said).isdisjoint(normalised(question).split())
    if kind is not None:
        spelt = _words("calendar" if kind == "date" else "numerals")
        days = (word.removesuffix("s") if word.endswith("days") else word for word in said)
        return any(re.search(r"\d", word) or word in spelt for word in days)
    dated = all(word.isdigit() or word in _words("calendar") for word in said)
    bare = dated and any(re.search(r"\d", word) for word in said)  # May and April are also names
    return not bare if _WHO_OR_WHERE.match(question.strip()) else None


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(yaml.safe_load(files(__package__).joinpath("answer_kind.yaml").read_text(encoding="utf-8"))[name])

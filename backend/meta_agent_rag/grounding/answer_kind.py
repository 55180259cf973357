"""What kind of answer an English question asks for, told by its words, and whether an answer is of it.

Only what the words settle is judged: a question in another language, or one that may be answered in many
ways, has no kind. Found on the first 150 questions of a file of HotpotQA, 100 of 2WikiMultiHopQA, and 80 of
MuSiQue, whose gold answers all pass; tests/unit/test_grounding_answer_kind.py holds cases of each.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

import yaml

from .normalise import as_quoted, normalised

Kind: TypeAlias = Literal["verdict", "choice", "date", "number"]

_HELPER = r"(?:is|are|was|were|do|does|did|has|have|had)"
_ENGLISH = re.compile(r"\b(?:the|of|and|both|from|by|same|to|than|which|who|that)\b", re.IGNORECASE)
_CHOICE = re.compile(r"""\bor\s+(?:(?:the|a|an)\s+)?["']?[A-Z0-9][^?]*\?\s*$""")
_EITHER = re.compile(r"\bor\b", re.IGNORECASE)
_VERDICT = re.compile(rf"{_HELPER}\b(?!\s+you\b)", re.IGNORECASE)
_DATE = re.compile(
    rf"^when\s+{_HELPER}\b|\b(?:what|which)\s+(?:exact\s+)?(?:year|date|day|month|decade|century)\b(?!\s+as\b)"
    r"|\bdate\s+of\s+(?:birth|death)\b|\bbirthday\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\bhow\s+(?:many|old|tall)\b", re.IGNORECASE)
_OPEN = re.compile(r"\b(?:who|whom|whose|what|which|where|when|how|why)\b", re.IGNORECASE)
_WHO_OR_WHERE = re.compile(r"(?:who|whom|whose|where)\b", re.IGNORECASE)


def kind_asked(question: str) -> Kind | None:
    """The kind of answer, where the question's words settle it: a yes or no, one of two things that it names, a date
    or year, a number.

    >>> kind_asked("Who was born first, Ada Roth or Bo Lind?"), kind_asked("Was Ada Roth the sister of Bo Lind?")
    ('choice', 'verdict')
    >>> kind_asked("In which year did the director of Salt Road die?"), kind_asked("Who directed Salt Road?")
    ('date', None)
    """
    asked = as_quoted(question)
    if _CHOICE.search(asked):
        return "choice"
    if _VERDICT.match(asked):
        if _EITHER.search(asked):
            return "choice"
        return "verdict" if _ENGLISH.search(asked) else None  # "Was ist ...?"
    if _DATE.search(asked):
        return "date"
    return "number" if _NUMBER.search(asked) else None


def of_kind(question: str, short_answer: str) -> bool | None:
    """Is the answer of the kind that the question asks for? `None` where the question's words do not tell.

    >>> of_kind("Who was born first, Ada Roth or Bo Lind?", "1931"), of_kind("Who directed Salt Road?", "yes")
    (False, False)
    """
    said = normalised(short_answer).split()
    kind = kind_asked(question)
    if kind == "verdict":
        return said[:1] in (["yes"], ["no"])
    if said in (["yes"], ["no"]):
        return False if kind or _OPEN.search(question) else None
    if kind == "choice":
        return not set(said).isdisjoint(normalised(question).split())
    if kind is not None:
        return _holds_figure(said, "calendar" if kind == "date" else "numerals")
    return not _bare_figure(said) if _WHO_OR_WHERE.match(question.strip()) else None


def _holds_figure(said: list[str], spelt: str) -> bool:
    return any(_has_digit(word) or word in _words(spelt) for word in said)


def _bare_figure(said: list[str]) -> bool:
    dated = all(word.isdigit() or word in _words("calendar") for word in said)
    return dated and any(map(_has_digit, said))  # May and April are names too


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(yaml.safe_load(files(__package__).joinpath("answer_kind.yaml").read_text(encoding="utf-8"))[name])

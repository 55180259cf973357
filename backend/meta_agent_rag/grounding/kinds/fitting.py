"""Is a checked answer of the kind that its question asks for?

Judged on the short answer and, for what it leaves open, on the supported claims. Only a clear mismatch counts: a date
or a mere place is nobody, a date is no amount, a temperature no length of time.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from ...text.figures.figure import CLOCK, in_unit
from ...text.language import language_of
from ...text.names import words
from ..answer_kind import is_among_the_two, kind_asked, of_kind
from ..relevance import asked_about
from ..support.statement import Item, Statement, read
from .asked import Asked, amounts, asked_for, before_a_date, before_a_place, year_words

_HABITUAL = re.compile(r"when\s+(?:is|are|do|does)\b", re.IGNORECASE)
_MAY_I = re.compile(r"(?:may|can|could|must|shall|should|will|would|am|do|need)\s+(?:i|we)\b", re.IGNORECASE)
_REFERENCES = {"length": "meter", "time": "second", "mass": "kilogram", "speed": "meter / second", "heat": "kelvin"}
_OTHER_KINDS: dict[Asked, frozenset[str]] = {
    "time": frozenset({"length", "mass", "speed", "heat", "money"}),
    "spell": frozenset({"length", "mass", "speed", "heat", "money"}),
    "long": frozenset({"mass", "speed", "heat", "money"}),
    "distance": frozenset({"mass", "speed", "heat", "money"}),
    "weight": frozenset({"length", "time", "speed", "heat", "money"}),
    "speed": frozenset({"mass", "heat", "money"}),
    "price": frozenset({"length", "mass", "speed", "heat"}),
    "amount": frozenset(),
    "number": frozenset(),
    "age": frozenset({"length", "mass", "speed", "heat", "money"}),
    "height": frozenset({"time", "mass", "speed", "heat", "money"}),
}
_MAY_BE_A_DATE = frozenset({"time", "age"})
_MAY_BE_A_PERIOD = frozenset({"spell", "long"})
_MAY_BE_HOURS = frozenset({"number", "amount"})
"""In Dutch "10 uur" is a time of day and a number of hours."""
_NEEDS_A_FIGURE = frozenset({"distance", "weight", "speed", "price", "amount"})


def answers_in_kind(question: str, short_answer: str, claims: Sequence[str], *, answers: bool | None = None) -> bool:
    """Is the short answer of the kind that the question asks for or, if it does not say, are the supported claims?

    A yes-or-no question may be answered by a sentence that contains neither word if it says what was asked, or if a
    critic found that it `answers` the question; "When does it open?" by "daily". If two things are named, the short
    answer must be one of them, not a third that begins like it.

    >>> answers_in_kind("In which year did it open?", "springs", ["It uses springs."])
    False
    >>> answers_in_kind("Who built the mill?", "1803", ["The mill was built in 1803."])
    False
    >>> answers_in_kind("May I pour what is left over down the drain?", "no", ["No."])
    True
    """
    kind, said = kind_asked(question), " ".join(claims)
    if kind == "verdict":
        return bool(answers) or _says_what_was_asked(question, claims)
    if _HABITUAL.match(question.strip()) or (kind is None and _MAY_I.match(question.strip())):
        return True
    if kind == "choice":
        return is_among_the_two(question, short_answer) and _is_of_kind(question, short_answer, said)
    return _is_of_kind(question, short_answer, said) and _fits(question, short_answer, claims)


def _is_of_kind(question: str, short_answer: str, said: str) -> bool:
    return of_kind(question, short_answer) is not False or of_kind(question, said) is True


def _says_what_was_asked(question: str, claims: Sequence[str]) -> bool:
    """Does a claim that is more than a yes say anything of what the question says of its subject, or the opposite?

    A question that says it with names alone ("Is Ada from Oslo?") is not judged, nor are several claims, which are
    compared ("designed by the same engineer").
    """
    said = [one for claim in claims if len((one := read(claim)).items) > 1]
    items = asked_about(question)
    subject = next(
        (n for n, item in enumerate(items) if not item.is_name or item.clause != items[0].clause), len(items)
    )
    rest = items[max(subject, 1) :]
    judged = len(said) == 1 and not all(item.is_value for item in rest)
    return not judged or any(_says(said[0], item) for item in rest)


def _says(statement: Statement, item: Item) -> bool:
    if statement.holds(item):
        return True
    pairs = [pair for one, other in statement.grammar.opposites for pair in ((one, other), (other, one))]
    return any(item.stem in one and not other.isdisjoint(statement.stems) for one, other in pairs)


def _fits(question: str, short_answer: str, claims: Sequence[str]) -> bool:
    language = language_of(" ".join((question, *claims)))
    asked = asked_for(question, language) or asked_for(question, language_of(question))
    if asked is None:
        return True
    short, said = read(short_answer, language), [read(claim, language) for claim in claims]
    own = read(question, language)
    if asked in {"person", "named"}:
        return not _is_a_date(asked, short, own) and (asked == "named" or not _is_a_place(short, own, said))
    return _is_measured(asked, short, said, language)


def _is_a_date(asked: Asked, short: Statement, question: Statement) -> bool:
    """Does the short answer add only dates or times to the question, or bare numbers if it asks for a person?"""
    added = [item.figure for item in short.items if not question.holds(item)] or [item.figure for item in short.items]
    return bool(added) and all(
        figure is not None
        and (figure.date is not None or figure.unit == CLOCK or (asked == "person" and not figure.unit))
        for figure in added
    )


def _is_a_place(short: Statement, question: Statement, said: Sequence[Statement]) -> bool:
    """Is what the short answer adds to the question, or all that it names, nothing but a name after "in" or "at"?"""
    places = before_a_place(short.language)
    if not places.isdisjoint(words(question.text)[-1:]):  # "Who does she believe in?"
        return False
    added = [item for item in short.items if not question.holds(item)]
    named = added or [item for item in short.items if _is_capital(item)]
    if not named or not all(_is_capital(item) for item in named):
        return False
    for item in named:
        used = [own for one in said for own in one.items if own.same_as(item)]
        if not all(own.before in places for own in ([item] if item.before else used or [item])):
            return False
    return True


def _is_capital(item: Item) -> bool:
    return item.figure is None and item.written[:1].isupper()


def _is_measured(asked: Asked, short: Statement, said: Sequence[Statement], language: str) -> bool:
    """Is a figure of the short answer, or else of the claims, of a kind that fits?"""
    figures = _figures(short)
    if figures:
        used = [own for one in said for own in _figures(one) if any(own.same_as(item) for item in figures)]
        measured = [item for item in figures if item.figure is not None and item.figure.unit]
        return any(_is_fitting(asked, item, language) for item in (used or figures) + measured)
    if not amounts().isdisjoint(words(short.text)) or asked == "time":
        return True
    found = [item for one in said for item in _figures(one)]
    if not found:
        return asked not in _NEEDS_A_FIGURE or any(not amounts().isdisjoint(words(one.text)) for one in said)
    return any(_is_fitting(asked, item, language) for item in found)


def _figures(statement: Statement) -> list[Item]:
    """Its figures; one after "in the year" is taken to stand after "in"."""
    pairs = list(zip((None, *statement.items), statement.items, strict=False))
    return [
        replace(item, before=prior.before) if prior and prior.written.lower() in year_words() else item
        for prior, item in pairs
        if item.figure is not None
    ]


def _is_fitting(asked: Asked, item: Item, language: str) -> bool:
    figure = item.figure
    assert figure is not None
    if figure.unit == CLOCK:
        return asked in _MAY_BE_A_DATE | _MAY_BE_A_PERIOD | _MAY_BE_HOURS
    if _is_point_in_time(item, language):
        return asked in _MAY_BE_A_DATE
    if figure.is_date:
        return asked in _MAY_BE_A_DATE | _MAY_BE_A_PERIOD
    return _measures(figure.unit) not in _OTHER_KINDS[asked]


def _is_point_in_time(item: Item, language: str) -> bool:
    """Is it a date with "in" or "on" before it?"""
    return item.figure is not None and item.figure.date is not None and item.before in before_a_date(language)


def _measures(unit: str) -> str:
    if unit.startswith("currency:"):
        return "money"
    found = (name for name, reference in _REFERENCES.items() if unit and in_unit(1.0, unit, reference) is not None)
    return next(found, "")

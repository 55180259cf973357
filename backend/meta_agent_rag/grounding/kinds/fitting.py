"""Is a checked answer of the kind that its question asks for?

Judged on the short answer, read as the supported claims use it. Only a clear mismatch counts; in doubt it is of the
kind. A date is nobody, and no amount; a temperature is no length of time, but "until it has 63 °C" may be one.
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
from .asked import Asked, amounts, asked_for, before_a_date, before_a_place, is_conditional, is_state, year_words

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
_MAY_BE_A_CONDITION = frozenset({"time", "spell", "long"})
_MAY_BE_FIGURES = re.compile(r"whom?\b|what\s+(?:is|was)\s+the\s+name\b", re.IGNORECASE)
_NEAR = 20
_TITLED = re.compile(r"the\s+\d+", re.IGNORECASE)
"""What is called by a number, as a band is."""


def answers_in_kind(question: str, short_answer: str, claims: Sequence[str], *, answers: bool | None = None) -> bool:
    """Is the short answer of the kind that the question asks for or, if it does not say, are the supported claims?

    A yes-or-no question may be answered by a sentence that contains neither word, unless it says something else of the
    subject and no critic found that it `answers` the question; the critic also decides on "in Oslo" for "Who ...?".
    "When does it open?" may be answered by "daily". If two things are named, the short answer must be one of them, not
    a third that begins like it.

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
    in_words = _is_of_kind(question, short_answer, said) or _may_be_of_kind(question, short_answer)
    return in_words and _fits(question, short_answer, claims, answers=bool(answers))


def _is_of_kind(question: str, short_answer: str, said: str) -> bool:
    return of_kind(question, short_answer) is not False or of_kind(question, said) is True


def _may_be_of_kind(question: str, short_answer: str) -> bool:
    """Is it a condition or an amount in words, or a name or telephone number in figures?"""
    kind, said = kind_asked(question), words(short_answer)
    if kind == "date":
        may_be = is_conditional(short_answer, "en") or is_state(short_answer, "en")
        return may_be and question.strip().lower().startswith("when")
    if kind == "number":
        return said != ["no"] and not amounts().isdisjoint(said)
    return _MAY_BE_FIGURES.match(question.strip()) is not None and any(map(str.isdigit, short_answer))


def _says_what_was_asked(question: str, claims: Sequence[str]) -> bool:
    """Does a claim that is more than a yes say anything of what the question says of its subject, or the opposite?

    One with another subject may imply it. A question that says it with names alone ("Is Ada from Oslo?") is not judged,
    nor are several claims, which are compared ("designed by the same engineer").
    """
    said = [one for claim in claims if len((one := read(claim)).items) > 1]
    items = asked_about(question)
    subject = next(
        (n for n, item in enumerate(items) if not item.is_name or item.clause != items[0].clause), len(items)
    )
    rest = items[max(subject, 1) :]
    own = next((item for one in said for item in one.items if item.figure is None), None)
    same = own is not None and any(own.same_as(item) for item in items[: max(subject, 1)])
    judged = len(said) == 1 and same and not all(item.is_value for item in rest)
    return not judged or any(_says(said[0], item) for item in rest)


def _says(statement: Statement, item: Item) -> bool:
    if statement.holds(item):
        return True
    pairs = [pair for one, other in statement.grammar.opposites for pair in ((one, other), (other, one))]
    return any(item.stem in one and not other.isdisjoint(statement.stems) for one, other in pairs)


def _fits(question: str, short_answer: str, claims: Sequence[str], *, answers: bool) -> bool:
    language = language_of(" ".join((question, *claims)))
    asked = asked_for(question, language) or asked_for(question, language_of(question))
    if asked is None:
        return True
    short, own = read(short_answer, language), read(question, language)
    if asked == "named":
        return not _is_a_date(short, own)
    if asked == "person":
        return not _is_a_date(short, own) and (answers or not _is_a_place(short, own))
    return _is_measured(asked, short_answer, claims, language)


def _is_a_date(short: Statement, question: Statement) -> bool:
    """Does the short answer add only dates, years or times to the question?"""
    added = [item.figure for item in short.items if not question.holds(item)] or [item.figure for item in short.items]
    dated = all(figure is not None and (figure.date is not None or figure.unit == CLOCK) for figure in added)
    return bool(added) and dated and not _TITLED.fullmatch(short.text.strip())


def _is_a_place(short: Statement, question: Statement) -> bool:
    """Is what the short answer adds to the question, or all that it names, nothing but names after "in" or "at"?"""
    places = before_a_place(short.language)
    if not places.isdisjoint(words(question.text)[-1:]):  # "Who does she believe in?"
        return False
    added = [item for item in short.items if not question.holds(item)]
    named = added or [item for item in short.items if _is_capital(item)]
    return bool(named) and all(_is_capital(item) and item.before in places for item in named)


def _is_capital(item: Item) -> bool:
    return item.figure is None and item.written[:1].isupper()


def _is_measured(asked: Asked, short_answer: str, claims: Sequence[str], language: str) -> bool:
    """Is a figure of the short answer of a kind that fits, as it stands there or in a claim?

    An answer in words fits, and a condition is an answer to "when" and "how long".
    """
    figures = _figures(read(short_answer, language))
    if not figures:
        return True
    said = [read(claim, language) for claim in claims]
    used = [(one, own) for one in said for own in _figures(one) if any(own.same_as(item) for item in figures)]
    if asked in _MAY_BE_A_CONDITION:
        whole = [short_answer, *(one.text for one, _ in used)]
        near = [short_answer, *(_before(one, own) for one, own in used)] if asked == "time" else []
        if any(is_conditional(text, language) for text in whole) or any(is_state(text, language) for text in near):
            return True
    measured = [item for item in figures if item.figure is not None and item.figure.unit]
    return any(_is_fitting(asked, item, language) for item in ([own for _, own in used] or figures) + measured)


def _before(statement: Statement, item: Item) -> str:
    """What stands just before a figure, and the figure."""
    assert item.figure is not None
    return statement.text[max(0, item.figure.start - _NEAR) : item.figure.end]


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

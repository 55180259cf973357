"""Looked-up values as what they are: dates, quantities, countries and names, so that code can compare them.

Dates are read by dateutil, quantities by quantulum3, countries and their demonyms by countryinfo.
"""

import re
import warnings
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from ...grounding.short_answer import same_answer
from ...text.normalise import normalised

_YEAR = re.compile(r"(?<![\d.,])(1\d{3}|20\d{2}|[3-9]\d{2})(?![\d,]|\.\d)")
_BEFORE_CHRIST = re.compile(r"\b(?:b\.?\s?c\.?(?:\s?e\.?)?)(?=\W|$)", re.IGNORECASE)
_DECADE = re.compile(r"\b\d{3,4}s\b|\bcentur(?:y|ies)\b", re.IGNORECASE)
_TIME_OR_ORDINAL = re.compile(r"\b(?:c(?:a|irca)?\.?|about|around|born|died|in|on|by)\s+(?=\d)", re.IGNORECASE)
_DEMONYM_SEPARATORS = re.compile(r"\s*(?:-|\u2013|/|,|\band\b)\s*")
_FIRST = datetime(1, 1, 1)
_OTHER = datetime(2, 2, 2)


@dataclass(frozen=True, kw_only=True)
class Date:
    """A date as precise as its source: `month` and `day` are 0 if it gives none. Years before Christ are negative."""

    year: int
    month: int = 0
    day: int = 0


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number and its unit; `unit` is empty for a bare count, `dimension` what the unit measures."""

    number: float
    unit: str = ""
    dimension: str = ""


def as_date(text: str) -> Date | None:
    """The date that a text gives, or `None`. A decade or century is no date.

    >>> as_date("born 8 December 1966"), as_date("in 1969"), as_date("the 1990s")
    (Date(year=1966, month=12, day=8), Date(year=1969, month=0, day=0), None)
    """
    year = _YEAR.search(text)
    if year is None or _DECADE.search(text):
        return None
    sign = -1 if _BEFORE_CHRIST.search(text) else 1
    month, day = _month_and_day(text, int(year[0]))
    return Date(year=sign * int(year[0]), month=month, day=day if month else 0)


def _month_and_day(text: str, year: int) -> tuple[int, int]:
    """Both 0 where the text does not give them: dateutil fills what is missing from its default, so ask with two."""
    from dateutil import parser

    plain = _TIME_OR_ORDINAL.sub("", _BEFORE_CHRIST.sub("", text))
    try:
        one = parser.parse(plain, fuzzy=True, default=_FIRST)
        other = parser.parse(plain, fuzzy=True, default=_OTHER)
    except (ValueError, OverflowError):
        return 0, 0
    if one.year != year:
        return 0, 0
    return one.month if one.month == other.month else 0, one.day if one.day == other.day else 0


_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEARS = r"(?:1\d{3}|20\d{2}|[3-9]\d{2})"
_DATES = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTHS},?\s+{_YEARS}\b|\b{_MONTHS}\s+\d{{1,2}}(?:st|nd|rd|th)?\s*,?\s+{_YEARS}\b"
    rf"|\b{_MONTHS}\s+{_YEARS}\b|(?<![\d.,])\b{_YEARS}\b(?![,.]\d)",
    re.IGNORECASE,
)


def date_texts(text: str) -> tuple[str, ...]:
    """The stretches of a text that give a date, in their order.

    >>> date_texts("Born on 8 December 1966, he died in 1990.")
    ('8 December 1966', '1990')
    """
    return tuple(_DATES.findall(text))


def dates_in(text: str) -> frozenset[Date]:
    """Every date of a text, and for each the less precise ones that it implies: its month, its year."""
    dates: set[Date] = set()
    for stretch in date_texts(text):
        if (date := as_date(stretch)) is not None:
            dates |= {date, Date(year=date.year, month=date.month), Date(year=date.year)}
    return frozenset(dates)


def numbers_in(text: str) -> frozenset[float]:
    """Every number of a text, written in digits or words."""
    return frozenset(float(found.value) for found in _parser().parse(text))


def later(one: Date, other: Date) -> bool | None:
    """Is `one` later than `other`? `None` where the shared precision does not tell."""
    pairs = ((one.year, other.year), (one.month, other.month), (one.day, other.day))
    for left, right in pairs:
        if left == 0 or right == 0:
            return None
        if left != right:
            return left > right
    return None


def as_quantity(text: str) -> Quantity | None:
    """The first number of a text with its unit, or `None`.

    >>> as_quantity("$3.5 million"), as_quantity("twenty-five episodes")
    (Quantity(number=3500000.0, unit='dollar', dimension='currency'), Quantity(number=25.0, unit='', dimension=''))
    """
    found = _parser().parse(text)
    if not found:
        return None
    unit = found[0].unit
    if unit.name == "dimensionless":
        return Quantity(number=float(found[0].value))
    return Quantity(number=float(found[0].value), unit=unit.name, dimension=unit.entity.name)


@cache
def _parser() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends its classifier for ambiguous units
        from quantulum3 import classifier, parser
    classifier.USE_CLF = False  # it would load a pickled model wherever scikit-learn is installed
    return parser


def countries(text: str) -> frozenset[str]:
    """The countries that a value names, as ISO codes: by name, by demonym, or several joined by a hyphen.

    >>> countries("American") == countries("United States"), sorted(countries("British-Argentine"))
    (True, ['AR', 'GB'])
    """
    known = _country_codes()
    whole = known.get(normalised(text))
    if whole:
        return frozenset({whole})
    codes = [known.get(normalised(part)) for part in _DEMONYM_SEPARATORS.split(text) if part.strip()]
    return frozenset(code for code in codes if code) if codes and all(codes) else frozenset()


def country_names(text: str) -> frozenset[str]:
    """Every name and demonym, normalised, of the countries that a value names: they stand for each other."""
    wanted = countries(text)
    return frozenset(name for name, code in _country_codes().items() if code in wanted)


@cache
def _country_codes() -> dict[str, str]:
    from countryinfo import all_countries

    by_size = sorted(all_countries(), key=lambda one: -(one.info().get("population") or 0))
    codes: dict[str, str] = {}
    for country in by_size:  # a demonym of several countries ("American") is that of the most populous one
        info = country.info()
        code = info.get("ISO", {}).get("alpha2", "")
        names = [info.get("name"), info.get("demonym"), info.get("nativeName"), *info.get("altSpellings", ())]
        for name in names:
            if name and len(name) > 2 and code:
                codes.setdefault(normalised(name), code)
    return codes


def same_value(one: str, other: str) -> bool | None:
    """Are two values the same thing? Compared as countries, dates, quantities, and last as names.

    `None` where a date is less precise than the other, so that nobody can tell.
    """
    left, right = countries(one), countries(other)
    if left and right:
        return bool(left & right)
    first, second = as_date(one), as_date(other)
    if first is not None and second is not None:
        if later(first, second) is not None:
            return False
        return True if first == second else None
    if normalised(one) == normalised(other):
        return True
    return same_answer(one, other)

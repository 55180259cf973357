"""Dates as values with the precision of their text; parsed by dateutil."""

import re
from dataclasses import dataclass
from datetime import datetime

_BC = r"\s?\b(?:b\.?\s?c\.?(?:\s?e\.?)?)(?=\W|$)"
_AD = r"(?:\s?\b(?:AD|CE|A\.D\.|C\.E\.)(?=\W|$))"
_EARLY = rf"(?:(?<=\bAD\s)\d{{1,3}}(?!\d)|\d{{1,3}}(?={_AD}|(?i:{_BC})))"
"""Years that only their era makes recognisable."""
_YEAR = re.compile(rf"(?<![\d.,])({_EARLY}|1\d{{3}}|20\d{{2}}|[3-9]\d{{2}})(?!\d|[.,]\d)")
_DOTTED = re.compile(r"(?<![\d.,])(\d{1,2})\.\s?(\d{1,2})\.\s?(1\d{3}|20\d{2})(?!\d)")
"""The day comes first."""
_BEFORE_CHRIST = re.compile(_BC, re.IGNORECASE)
_DECADE = re.compile(r"\b\d{3,4}s\b|\bcentur(?:y|ies)\b", re.IGNORECASE)
_TIME_OR_ORDINAL = re.compile(r"\b(?:c(?:a|irca)?\.?|about|around|born|died|in|on|by)\s+(?=\d)", re.IGNORECASE)
_FIRST = datetime(1, 1, 1)
_OTHER = datetime(2, 2, 2)
_DAYS, _MONTHS_OF_A_YEAR = range(1, 32), range(1, 13)


@dataclass(frozen=True, kw_only=True)
class Date:
    """A date with the precision of its source: `month` and `day` are 0 if missing. Years BC are negative."""

    year: int
    month: int = 0
    day: int = 0


def as_date(text: str) -> Date | None:
    """The date in a text, or `None`. A decade or century is not a date.

    >>> as_date("born 8 December 1966"), as_date("in 1969"), as_date("the 1990s")
    (Date(year=1966, month=12, day=8), Date(year=1969, month=0, day=0), None)
    """
    if (dotted := _DOTTED.search(text)) is not None and int(dotted[1]) in _DAYS and int(dotted[2]) in _MONTHS_OF_A_YEAR:
        return Date(year=int(dotted[3]), month=int(dotted[2]), day=int(dotted[1]))
    year = _YEAR.search(text)
    if year is None or _DECADE.search(text):
        return None
    sign = -1 if _BEFORE_CHRIST.match(text, year.end()) else 1
    named = next((one[0] for one in _DATES.finditer(text) if one.end() >= year.end()), "")
    month, day = _month_and_day(named, int(year[0]))
    return Date(year=sign * int(year[0]), month=month, day=day if month else 0)


def _month_and_day(text: str, year: int) -> tuple[int, int]:
    """Both 0 if the text does not give them: dateutil fills in missing parts from its default, so parse with two."""
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
_YEARS = rf"(?-i:{_EARLY}|1\d{{3}}|20\d{{2}}|[3-9]\d{{2}})"
_DAY = r"(?:the\s+)?\d{1,2}(?:st|nd|rd|th)?"
_DATES = re.compile(
    rf"(?:\b{_YEARS}[-/]\d{{1,2}}[-/]\d{{1,2}}(?:T[\d:.]+)?\b|\b\d{{1,2}}/\d{{1,2}}/{_YEARS}\b|{_DOTTED.pattern}"
    rf"|\b{_YEARS},?\s+{_MONTHS}\s+\d{{1,2}}\b"
    rf"|\b{_DAY}\.?(?:\s+(?:of\s+)?|-){_MONTHS}(?:,?\s+(?:of\s+)?|-){_YEARS}\b"
    rf"|\b{_MONTHS}\s+{_DAY}\s*,?\s+{_YEARS}\b|\b{_MONTHS},?\s+(?:of\s+)?{_YEARS}\b"
    rf"|(?<![\d.,])\b(?-i:AD\s)?{_YEARS}\b(?![,.]\d))(?:{_BC}|(?-i:{_AD}))?",
    re.IGNORECASE,
)


def date_texts(text: str) -> tuple[str, ...]:
    """The stretches of a text that contain a date, in order.

    >>> date_texts("Born on 8 December 1966, he died in 1990.")
    ('8 December 1966', '1990')
    """
    return tuple(match[0] for match in _DATES.finditer(text))


_AROUND = re.compile(r"\b(?:in|on|by|the|of|about|around|circa|ca?|born|died|year|ad|ce)\b|\W", re.IGNORECASE)


def is_date(text: str) -> bool:
    """Whether a text is nothing but a date.

    >>> is_date("born on 8 December 1966"), is_date("2018 Winter Olympics")
    (True, False)
    """
    return as_date(text) is not None and not _AROUND.sub("", _DATES.sub("", text))


def dates_in(text: str) -> frozenset[Date]:
    """Every date in a text, and the less precise ones that each implies: its month, its year."""
    dates: set[Date] = set()
    for stretch in date_texts(text):
        if (date := as_date(stretch)) is not None:
            dates |= {date, Date(year=date.year, month=date.month), Date(year=date.year)}
    return frozenset(dates)


def later(one: Date, other: Date) -> bool | None:
    """Whether `one` is later than `other`; `None` if the shared precision does not decide."""
    pairs = ((one.year, other.year), (one.month, other.month), (one.day, other.day))
    for left, right in pairs:
        if left == 0 or right == 0:
            return None
        if left != right:
            return left > right
    return None

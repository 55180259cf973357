"""Numbers and times of day in words that text2num does not read: "two thirds", "a quarter to eleven", 十七."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

from . import lexicon
from .figure import CLOCK, Figure

_VULGAR = {"\u00bd": ".5", "\u00bc": ".25", "\u00be": ".75"}
_NTH = re.compile(r"\b(?:one|an?|1)\s+(\d+)th(?=\s+of\b)")
_VULGAR_FRACTION = re.compile(r"(\d+)?\s?([\u00bc-\u00be])")
_SIGNS = re.compile(r"[\u3007\u96f6\u4e00\u4e8c\u4e24\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u767e\u5343]+")
_PARTS = re.compile(rf"({_SIGNS.pattern}|\d+)\u5206[\u306e\u4e4b]({_SIGNS.pattern}|\d+)")
_COUNTED = re.compile(
    rf"(?<![\u7b2c\u4e07\u5104\u4ebf])({_SIGNS.pattern})(?=[\u4eba\u540d\u4f4d\u500b\u4e2a\u56de\u6b21\u5ea6\u5e74\u6708\u65e5\u6642\u65f6\u5206\u79d2\u6b73\u5c81\u5186\u5143"
    r"\u679a\u672c\u518a\u53f0\u982d\u5339\u5c0f\u9031\u5468\u968e\u68df\u756a\u30f6\u304b\u30ad\u30bb\u30e1\u30b0\u516c\u5343\u7c73\u70b9\u5929\u3064\u5305\u676f])"
)
"""Numerals before a counter or a unit; elsewhere they are parts of words."""
_DECIMAL = re.compile(
    rf"({_SIGNS.pattern})[\u30fb\u70b9]([\u3007\u96f6\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d]+)"
    r"(?=\u30ea\u30c3\u30c8\u30eb|\u30ad\u30ed|\u30e1\u30fc\u30c8\u30eb|\u30b0\u30e9\u30e0|\u30c8\u30f3|\u30bb\u30f3\u30c1|\u30df\u30ea|\u30d1\u30fc\u30bb\u30f3\u30c8|\u516c|\u5428|\u5347|\u5343\u514b)"
)
"""Numerals with a decimal point, before a unit of measurement: elsewhere it is a time, or "two or three"."""
_TENTHS = re.compile(
    r"(?<=[\u4e2d\u5176\u7ea6\u5360\u6709\u8fd1\u8fc7])([\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d])\u6210"
)
"""Tenths in Chinese, behind words for a share."""
_DISCOUNT = re.compile(r"([\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d])\u5272(?=\u5f15)")
"""A discount in Japanese, in tenths."""
_GOES_ON = re.compile(r"\s*(?:$|[.,;:!?)]|(?:on|in|at|and|or|every|each|sharp)\b)")
_ONE = "\u4e00"
"""Stays a word, as in other languages."""
_TENS = {"\u5341": 10, "\u767e": 100, "\u5343": 1000}
LASTS = re.compile(r"\b(?:dur[ée]\w*|dura|pendant|temps|trajet|faut|comptez)\b[^.;]*$", re.IGNORECASE)
"""Before "2 h 15", words that make it a duration."""
LOOK_BACK = 20
_NOON, _DAY = 12 * 60, 24 * 60


def with_shares(text: str, language: str) -> str:
    """The text with shares in words as percentages, and Chinese and Japanese numerals before counters in digits.

    >>> with_shares("A discount of one third of the price", "en"), with_shares("\u5341\u4e03\u5e74\u9593", "ja")
    ('A discount of 33.3 % of the price', '17\u5e74\u9593')
    """
    if language in {"ja", "zh"}:
        tenths = _TENTHS if language == "zh" else _DISCOUNT
        text = tenths.sub(lambda match: f"{_number(match[1]) * 10} %", text)
        text = _PARTS.sub(lambda match: f"{100 * _number(match[2]) / _number(match[1]):.3g} %", text)
        text = _DECIMAL.sub(
            lambda match: f"{_number(match[1])}.{''.join(str(_digit(sign)) for sign in match[2])}", text
        )
        return _COUNTED.sub(lambda match: match[1] if match[1] == _ONE else str(_number(match[1])), text)
    for pattern, percentage in _rewritten("shares", language):
        text = pattern.sub(percentage, text)
    return text


def _number(signs: str) -> int:
    """The value of a numeral: \u4e8c\u5341\u4e94 is 25, \u4e8c\u3007\u4e00\u4e8c is 2012."""
    if signs.isdigit() and signs.isascii():
        return int(signs)
    if not any(sign in _TENS for sign in signs):
        return int("".join(str(_digit(sign)) for sign in signs))
    value = digit = 0
    for sign in signs:
        if sign in _TENS:
            value += max(digit, 1) * _TENS[sign]
            digit = 0
        else:
            digit = _digit(sign)
    return value + digit


def _digit(sign: str) -> int:
    return 2 if sign == "\u4e24" else int(unicodedata.numeric(sign))


def with_fractions(text: str, language: str) -> str:
    """The text with mixed numbers as decimals; other number words must already be in digits.

    >>> with_fractions("It took 2 and a half hours and 1\u00bd days.", "en")
    'It took 2.5 hours and 1.5 days.'
    """
    for pattern, decimal in _rewritten("mixed", language):
        text = pattern.sub(decimal, text)
    text = _NTH.sub(lambda match: f"{100 / int(match[1]):.3g} %", text) if language == "en" else text
    return _VULGAR_FRACTION.sub(lambda match: f"{match[1] or 0}{_VULGAR[match[2]]}", text)


def spoken_times(text: str, language: str) -> Iterator[Figure]:
    """The times of day in words; one that may be before or after noon has both readings."""
    known = lexicon.times().get(language)
    if known is None:
        return
    named: Mapping[str, int] = known["named"]
    for match in _time_words(language).finditer(text):
        groups = {name: value.lower() for name, value in match.groupdict().items() if value}
        if "named" in groups:
            minutes: tuple[float, ...] = (float(named[groups["named"]]),)
        else:
            shifts = {**known.get("before", {}), **known.get("behind", {})}
            shift = shifts.get(groups.get("before") or groups.get("behind"))
            if (shift is None and "part" not in groups) or _is_amount(groups, text[match.end() :]):
                continue
            minute = int(groups.get("minute", 0)) + (shift or 0)
            minutes = _readings(int(groups["hour"]), minute, groups.get("part"), known)
        lasts = LASTS.search(text, max(0, match.start() - LOOK_BACK), match.start())
        yield Figure(
            written=match[0],
            start=match.start(),
            end=match.end(),
            numbers=minutes[:1] if lasts else minutes,
            unit="minute" if lasts else CLOCK,
        )


def _is_amount(groups: Mapping[str, str], behind: str) -> bool:
    """Is it "10 past 3 goalkeepers" rather than "10 past 3 on Friday"?"""
    return groups.get("before", "")[:1].isdecimal() and _GOES_ON.match(behind) is None


def _readings(hour: int, minute: int, part: str | None, known: Mapping[str, Any]) -> tuple[float, ...]:
    at = float((60 * hour + minute) % _DAY)
    if hour > 12 or part in known["early"]:
        return (at,)
    later = (at + _NOON) % _DAY
    return (later,) if part in known["late"] else (at, later)


@cache
def _rewritten(kind: Literal["shares", "mixed"], language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    rows = (lexicon.shares() if kind == "shares" else lexicon.mixed()).get(language, {})
    return tuple((re.compile(pattern), str(digits)) for pattern, digits in rows.items())


@cache
def _time_words(language: str) -> re.Pattern[str]:
    known = lexicon.times()[language]
    before, behind = (lexicon.alternation(known.get(side, {})) or r"(?!)" for side in ("before", "behind"))
    part = lexicon.alternation([*known["early"], *known["late"]])
    return re.compile(
        rf"\b(?:(?P<before>{before})\s+)?(?P<hour>[01]?\d|2[0-3])\b(?:[:.](?P<minute>[0-5]\d)\b)?(?:\s+(?P<behind>{behind})\b)?"
        rf"(?:\s+(?:o'clock|uhr|uur|heures|h))?(?:\s+(?P<part>{part})\b)?|\b(?P<named>{lexicon.alternation(known['named'])})\b",
        re.IGNORECASE,
    )

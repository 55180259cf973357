"""Extracts the figures from a text."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache

from ..dates import Date
from ..language import language_of
from . import lexicon
from .figure import CLOCK, Figure, in_unit, measurable
from .spoken import LASTS, LOOK_BACK, spoken_times, with_fractions, with_shares

_SPOKEN = frozenset({"en", "de", "fr", "es", "it", "pt", "nl", "da"})
"""Languages whose number words text2num supports."""
_LEAST_SPOKEN = 2
_BEFORE_AN_ARTICLE = re.compile(r"([:;()]\s*|,\s+(?=(?:an?|one|eine?[nmrs]?|une?|uno|una|uma?|een)\s))", re.IGNORECASE)
_NUMBER = r"\d{1,3}(?:([.,'\u2019\u00a0\u202f ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?"
_NUMBERS = re.compile(rf"(?<![\w.,])(?:{_NUMBER})|(?<=[^\W\d_a-zA-Z])(?:{_NUMBER})")
_POWER = re.compile(r"[ \u00a0]?(10{3,12})(?!\d)")
_CLOCK = re.compile(
    r"(?<![\d:])(?<!\d[.,])(?P<h>[01]?\d|2[0-3])(?:[:.](?P<m>[0-5]\d))?\s?(?P<half>[ap])\.?m\b\.?"
    r"|(?<![\d:])(?<!\d[.,])(?:(?P<part>\u5348\u524d|\u5348\u5f8c|\u4e0a\u5348|\u4e0b\u5348|\uc624\uc804|\uc624\ud6c4)\s?)?(?P<h3>[01]?\d|2[0-4])\s?"
    r"(?:[\u6642\u65f6\uc2dc](?!\u9593|\u95f4|\uac04)|[\u70b9\u9ede](?=\s?\d|\u534a|\u6574)|(?(part)[\u70b9\u9ede]|(?!)))"
    r"(?:\s?(?P<m5>[0-5]?\d)\s?[\u5206\ubd84]|(?P<half_hour>\u534a))?"
    r"|(?<![\d:])(?<!\d[.,])(?P<h2>[01]?\d|2[0-4])(?:(?:[:.](?P<m2>[0-5]\d))?\s?(?:Uhr|uur)\b|:(?P<m3>[0-5]\d)(?![\d:])|\s?h\s?(?P<m4>[0-5]\d)\b(?!\s?min))"
    r"|(?:(?<=\b[aA]lle )|(?<=\bdalle )|(?<=\bore )|(?<=\ble ))(?P<h4>[01]?\d|2[0-3])\.(?P<m6>[0-5]\d)\b"
    r"|(?:(?<=\b[aA]lle )|(?<=\bdalle ))(?P<h6>[01]?\d|2[0-3])\b(?![.:,]\d)"
    r"|(?<=\b[aA]t )(?P<h5>[01]?\d|2[0-3])\.(?P<m7>[0-5][05])"
    r"(?=[.,;:)]?(?:\s*$|\s(?:and|or|to|till|until|on|in|every|each|sharp)\b)|[,;:)])"  # at 17.50 on Friday
)
_FRENCH_HOURS = re.compile(
    r"(?<![\d:.,])(?:(?P<one>(?:[01]?\d|2[0-3])\s?h)(?:\s?(?P<one_m>[0-5]\d))?\s?(?:\u00e0|-|\u2013)\s?"
    r"|(?<!\d \u00e0 )(?<=\b\u00e0 ))"
    r"(?P<two>(?:[01]?\d|2[0-4])\s?h)(?:\s?(?P<two_m>[0-5]\d))?\b",
    re.IGNORECASE,
)
_FROM_TIME = re.compile(
    r"(?<![\d.,:])((?P<h>[01]?\d|2[0-3])[.:](?P<m>[0-5]\d))\s?(?:-|\u2013|to|until|till|and|bis|und|tot|en)\s?$",
    re.IGNORECASE,
)
"""The first time of "from 10.30 to 15.00 Uhr"."""
_BEGINS = re.compile(r"\b(?:start|begin|open|clos|end|meet|leav|depart|arriv|finish)\w*", re.IGNORECASE)
_SENTENCE = 50
_MINUTES_SIGN = "\u5206"
"""In Chinese, minutes only behind hours: alone it may be a point or a share."""
_AFTER_NOON = frozenset({"\u5348\u5f8c", "\u4e0b\u5348", "\uc624\ud6c4"})
_LAPSE = re.compile(r"(?<![\d:])(\d{1,2}):([0-5]\d):([0-5]\d(?:[.,]\d+)?)(?![\d:])")
_ISO = re.compile(r"(?<!\d)(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)")
_DOTTED = re.compile(r"(?<!\d)(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?!\d)")
_SIGNS = re.compile(
    r"(?:(?<!\d)(?P<y>\d{4})\s?[年년]\s?)(?:(?P<m>\d{1,2})\s?[月월]\s?)?(?:(?P<d>\d{1,2})\s?[日일](?!間))?"
    r"|(?<!\d)(?P<m2>\d{1,2})\s?[月월]\s?(?P<d2>\d{1,2})\s?[日일](?!間)"
)
_FROM = re.compile(
    r"(?<![\d.,])(\d{1,2})(?:st|nd|rd|th|er|\.?[\u00ba\u00b0]|\.)?\s?(?:-|\u2013|to|until|and|bis|und|au|et|al|y|e|a|tot|en)\s?(?:the\s|le\s|zum\s|den\s)?$"
)
_FROM_WITH_ARTICLES = re.compile(
    r"\b(?:the|den|le|el|il|o|de)\s(\d{1,2})(?:st|nd|rd|th|er|e|\.)?\s(?:and|und|et|y|e|en)\s(?:the|den|le|el|il|o|de)\s$",
    re.IGNORECASE,
)
"""Before "28 de febrero", a day of the same month: "el 21 y el"."""
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|re|e|\u00ba|\u00aa)\b")
_FIRST_YEAR, _LAST_YEAR = 1000, 2199


@lru_cache(maxsize=512)
def in_digits(text: str, language: str = "") -> str:
    """The text with its number words in digits, if its language is supported; "one" stays a word.

    >>> in_digits("They had twenty-five cats and two dogs.")
    'They had 25 cats and 2 dogs.'
    """
    code = language or language_of(text)
    text = with_shares(text, code)
    if code not in _SPOKEN:
        return text
    from text_to_num import alpha2digit

    # in parts, else "three: a cup and a plate" would begin with 3 and 1
    parts = _BEFORE_AN_ARTICLE.split(text)
    parts[::2] = [str(alpha2digit(part, code, _LEAST_SPOKEN)) for part in parts[::2]]
    return with_fractions("".join(parts), code)


@lru_cache(maxsize=512)
def figures(text: str, language: str = "") -> tuple[Figure, ...]:
    """The figures of a text in order; number words must already be in digits (see `in_digits`).

    >>> [(figure.numbers, figure.unit) for figure in figures("On 4 May 2021 it was 37.5 km long.") if figure.numbers]
    [((37.5,), 'kilometer')]
    """
    code = language or language_of(text)
    found = list(_dates(text))
    taken = [(figure.start, figure.end) for figure in found]
    quantities = _with_units_shared(text, tuple(_compounds(text, tuple(_quantities(text, code)))))
    for figure in (
        *spoken_times(text, code),
        *_french_hours(text),
        *_clocks(text, code),
        *quantities,
        *_multiples(text),
    ):
        if not any(start < figure.end and figure.start < end for start, end in taken):
            found.append(figure)
            taken.append((figure.start, figure.end))
    return tuple(sorted(found, key=lambda figure: figure.start))


def _dates(text: str) -> Iterator[Figure]:
    for match in _ISO.finditer(text):
        yield from _date(match, *map(int, match.groups()))
    for match in _DOTTED.finditer(text):
        day, month, year = map(int, match.groups())
        yield from _date(match, year, month, day)
    for match in _SIGNS.finditer(text):
        parts = (
            [int(match[name] or 0) for name in ("y", "m", "d")]
            if match["y"]
            else [0, int(match["m2"]), int(match["d2"])]
        )
        yield from _date(match, *parts)
    for match in _named_dates().finditer(text):
        held = match.groupdict()
        day, year = (
            next((int(held[key]) for key in keys if held.get(key)), 0) for keys in (("d", "d2"), ("y", "y2", "y3"))
        )
        name = next(held[key] for key in ("m", "m2", "m3") if held.get(key))
        month = lexicon.months()[name.lower()]
        before = (text, max(0, match.start() - LOOK_BACK), match.start())
        if held.get("d") and (first := _FROM.search(*before) or _FROM_WITH_ARTICLES.search(*before)):
            # "from 3 to 28 November 2020"
            yield from _date(first, year, month, int(first[1]))
        yield from _date(match, year, month, day)


def _date(match: re.Match[str], year: int, month: int, day: int) -> Iterator[Figure]:
    if month > 12 or day > 31:
        return
    date, bare = Date(year=year, month=month, day=day), not month
    numbers = (float(year),) if bare else ()
    yield Figure(written=match[0].strip(), start=match.start(), end=match.end(), date=date, numbers=numbers)


@cache
def _named_dates() -> re.Pattern[str]:
    month = lexicon.alternation(lexicon.months())
    of = r"(?:\s+(?:of|de|del|di|d')\s?|\s+|\s?-\s?)"
    return re.compile(
        rf"(?<![\d.,])(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|\.?[\u00ba\u00aa\u00b0]|\.)?{of}(?P<m>{month})\b\.?(?:,?{of}(?P<y>\d{{4}})\b)?"
        rf"|\b(?P<m2>{month})\b\.?\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s?[%:.]\d)(?:,?\s+(?P<y2>\d{{4}})\b)?"
        rf"|\b(?P<m3>{month})\b\.?,?{of}(?P<y3>\d{{4}})\b",
        re.IGNORECASE,
    )


def _french_hours(text: str) -> Iterator[Figure]:
    """The hours of "de 9 h à 21 h" and "à 9 h"; elsewhere, as in "2 h de route", they are a duration."""
    for match in _FRENCH_HOURS.finditer(text):
        for name, minute in (("one", match["one_m"]), ("two", match["two_m"])):
            if match[name]:
                end = match.end(f"{name}_m") if minute else match.end(name)
                yield Figure(
                    written=text[match.start(name) : end],
                    start=match.start(name),
                    end=end,
                    numbers=(60.0 * int(match[name][:-1]) + int(minute or 0),),
                    unit=CLOCK,
                )


def _clocks(text: str, language: str) -> Iterator[Figure]:
    for match in _LAPSE.finditer(text):
        seconds = 3600.0 * int(match[1]) + 60.0 * int(match[2]) + float(match[3].replace(",", "."))
        yield Figure(written=match[0], start=match.start(), end=match.end(), numbers=(seconds,), unit="second")
    for match in _CLOCK.finditer(text):
        if match["h6"] and language != "it":  # German has "alle 14 Tage"
            continue
        if match["h5"] and not _BEGINS.search(text, max(0, match.start() - _SENTENCE), match.start()):
            continue
        hour = int(match["h"] or match["h2"] or match["h3"] or match["h4"] or match["h5"] or match["h6"])
        minute = int(next((match[name] for name in ("m", "m2", "m3", "m4", "m5", "m6", "m7") if match[name]), 0))
        if match["half"]:
            hour = hour % 12 + (12 if match["half"].lower() == "p" else 0)
        if match["part"]:
            hour = hour % 12 + (12 if match["part"] in _AFTER_NOON else 0)
        if match["half_hour"]:
            minute = 30
        if range_begun := _FROM_TIME.search(text, max(0, match.start() - LOOK_BACK), match.start()):
            yield Figure(
                written=range_begun[1],
                start=range_begun.start(1),
                end=range_begun.end(1),
                numbers=(60.0 * int(range_begun["h"]) + int(range_begun["m"]),),
                unit=CLOCK,
            )
        lasts = match["m4"] and LASTS.search(text, max(0, match.start() - LOOK_BACK), match.start())
        yield Figure(
            written=match[0],
            start=match.start(),
            end=match.end(),
            numbers=(60.0 * hour + minute,),
            unit="minute" if lasts else CLOCK,
        )


def _quantities(text: str, language: str) -> Iterator[Figure]:
    position = 0
    for match in _NUMBERS.finditer(text):
        if match.start() < position:
            continue
        start, end, written = match.start(), match.end(), match[0]
        numbers, step = _readings(written, language), _step(written)
        power = _POWER.match(text, end) or _multiplier().match(text, end)
        if power and not _unit_behind().match(text, end):  # a kilowatt begins with the sign for a thousand
            factor = lexicon.multipliers().get(power[1]) or float(power[1])
            numbers, step, end = tuple(number * factor for number in numbers), step * factor, power.end()
        unit, ordinal = "", None
        if sign := _currency_before().search(text[:start]):
            unit, start = lexicon.currency_symbols()[sign[1]], start - len(sign[0])
        elif (
            (behind := _unit_behind().match(text, end))
            and not _ORDINAL.match(text, end)  # "2nd" is no speed in knots
            and not _is_no_unit(behind, written, language)
        ):
            named, end = behind["name"], behind.end()
            unit = lexicon.unit_names()[named.lower()] if named else lexicon.unit_symbols()[behind["symbol"]]
            if (per := _per_unit().match(text, end)) and measurable(unit):
                unit, end = f"{unit} / {lexicon.unit_symbols()[per[1]]}", per.end()
        elif language == "ja" and text[end : end + 1] == _MINUTES_SIGN:
            unit, end = "minute", end + 1
        elif not text[end : end + 1].isspace() and (ordinal := _ORDINAL.match(text, end)):
            end = ordinal.end()
        position = end
        year = numbers[0] if not unit and written.isdigit() and _FIRST_YEAR <= numbers[0] <= _LAST_YEAR else None
        yield Figure(
            written=text[start:end],
            start=start,
            end=end,
            numbers=numbers,
            unit=unit,
            date=None if year is None else Date(year=int(year)),
            step=step,
            approximate=_about().search(text[max(start - 30, 0) : start]) is not None,
            ordinal=ordinal is not None,
        )


def _is_no_unit(behind: re.Match[str], written: str, language: str) -> bool:
    """Does it only look like a unit, after a year: "the 1990s", "in 1986 Stone directed"? In German, any noun does."""
    if not (written.isdigit() and _FIRST_YEAR <= int(written) <= _LAST_YEAR):
        return False
    return behind[0] == "s" or (language != "de" and bool(behind["name"]) and behind["name"][:1].isupper())


_AND = re.compile(r"\s*,?\s*(?:and|und|et|y|e|en|og|och|и)?\s*")


def _compounds(text: str, quantities: tuple[Figure, ...]) -> Iterator[Figure]:
    """The quantities, with compound ones combined: 5 hours and 15 minutes, 6 feet 2 inches."""
    whole: Figure | None = None
    for figure in quantities:
        joined = None if whole is None else _joined(text, whole, figure)
        if joined is None and whole is not None:
            yield whole
        whole = joined or figure
    if whole is not None:
        yield whole


def _joined(text: str, one: Figure, other: Figure) -> Figure | None:
    if one.unit == "hour" and not other.unit and text[other.end : other.end + 1] == _MINUTES_SIGN:
        other = replace(other, unit="minute", end=other.end + 1)
    if not one.unit or not other.unit or one.unit == other.unit or not _AND.fullmatch(text[one.end : other.start]):
        return None
    part, unit = in_unit(other.number, other.unit, one.unit), in_unit(1.0, other.unit, one.unit)
    if part is None or unit is None or not unit < 1.0 or part >= 1.0:
        return None
    return replace(
        one, written=text[one.start : other.end], end=other.end, numbers=(one.number + part,), step=other.step * unit
    )


_UP_TO = re.compile(r"\s*(?:,|to|and|or|bis|und|oder|\u00e0|et|ou|a|y|o|e|do|\u0434\u043e|-|\u2013|~)\s*")


def _with_units_shared(text: str, quantities: tuple[Figure, ...]) -> Iterator[Figure]:
    """The quantities; a unit or a million written once applies to all: 48.0 to 51.6 million; 11, 7 and 9 minutes."""
    shared: list[Figure] = []
    for figure in reversed(quantities):
        following = shared[-1] if shared else None
        bare = not figure.unit and figure.date is None and not figure.ordinal
        if following is not None and bare and following.unit and _UP_TO.fullmatch(text[figure.end : following.start]):
            factor = scale(following)
            shared.append(
                replace(
                    figure,
                    unit=following.unit,
                    numbers=tuple(dict.fromkeys((*(number * factor for number in figure.numbers), *figure.numbers))),
                    step=figure.step * factor,
                )
            )
        else:
            shared.append(figure)
    return reversed(shared)


def scale(figure: Figure) -> float:
    """The power of ten written after a number: a million in "1.2 million", else 1."""
    power = _POWER.search(figure.written) or _multiplier().search(figure.written)
    return (lexicon.multipliers().get(power[1]) or float(power[1])) if power else 1.0


def _multiples(text: str) -> Iterator[Figure]:
    """Words such as "twice" and "half"."""
    for match in _multiple_words().finditer(text):
        number = lexicon.multiples()[match[0].lower()]
        yield Figure(written=match[0], start=match.start(), end=match.end(), numbers=(number,))


@cache
def _multiple_words() -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{lexicon.alternation(lexicon.multiples())})(?!-?\w)", re.IGNORECASE)


def _readings(written: str, language: str) -> tuple[float, ...]:
    """The number, or both readings of one such as 1,260, starting with that of the text's language."""
    plain = re.sub(r"['\u2019\u00a0\u202f ]", "", written)
    signs = [sign for sign in plain if sign in ".,"]
    if not signs:
        return (float(plain),)
    last = signs[-1]
    decimal = (
        float(plain.replace("," if last == "." else ".", "").replace(last, ".")) if plain.count(last) == 1 else None
    )
    grouped = re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", plain)
    if not grouped or len(set(signs)) > 1:
        return (decimal,) if decimal is not None else (float(re.sub(r"[.,]", "", plain)),)
    whole = float(re.sub(r"[.,]", "", plain))
    if decimal is None:
        return (whole,)
    comma_is_decimal = language not in {"en", "ja", "zh", "ko", "th", "he"}
    return (decimal, whole) if (last == ",") == comma_is_decimal else (whole, decimal)


def _step(written: str) -> float:
    part = re.search(r"[.,](\d{1,2}|\d{4,})$", written)
    if part:
        return float(10 ** -len(part[1]))
    digits = re.sub(r"\D", "", written)
    return float(10 ** (len(digits) - len(digits.rstrip("0")))) if digits.strip("0") else 1.0


@cache
def _multiplier() -> re.Pattern[str]:
    return re.compile(rf"[ \u00a0]?({lexicon.alternation(lexicon.multipliers())})(?![a-zA-Z])")


@cache
def _currency_before() -> re.Pattern[str]:
    return re.compile(rf"({lexicon.alternation(lexicon.currency_symbols())})\s?$")


@cache
def _unit_behind() -> re.Pattern[str]:
    names, symbols = lexicon.alternation(lexicon.unit_names()), lexicon.alternation(lexicon.unit_symbols())
    return re.compile(rf"[ \u00a0\u202f-]?(?:(?P<name>(?i:{names}))|(?P<symbol>{symbols}))(?![^\W\d_\u0e00-\uffff])")


@cache
def _per_unit() -> re.Pattern[str]:
    symbols = [symbol for symbol, unit in lexicon.unit_symbols().items() if measurable(unit)]
    return re.compile(rf"/({lexicon.alternation(symbols)})(?![^\W\d_])")


@cache
def _about() -> re.Pattern[str]:
    words = lexicon.alternation(lexicon.approximators())
    return re.compile(rf"(?:(?<!\w)(?:{words})(?:\s+(?:de|the|a))?|[約约])\s*$", re.IGNORECASE)

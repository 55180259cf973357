"""The quantities in an English text, with units that Pint converts: what the loop's operators compare."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

_NUMBER = re.compile(
    r"(?<![\w.,])(?:\d{1,3}(?:([.,'\u2019\u00a0\u202f ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?(?!\d)"
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?(?!\d)|\d+(?:[.,]\d+)?)"
)
_MAGNITUDES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
_POWERS = {**_MAGNITUDES, "bn": 1e9, "tn": 1e12, "lakh": 1e5, "crore": 1e7, "k": 1e3, "m": 1e6, "b": 1e9}
_SHORT_POWER = re.compile(r"[ \u00a0]?(k|m|b)\b", re.IGNORECASE)
"""After an amount of money; elsewhere, m are metres."""
_MAGNITUDE = rf"(?:{'|'.join(_MAGNITUDES)})"
_POWER = re.compile(rf"[ \u00a0-]?({_MAGNITUDE}|bn|tn|lakh|crore)s?(?![a-zA-Z])", re.IGNORECASE)
_HALF = re.compile(rf"\b(?:([\w-]+)\s+and\s+a\s+half\b|half\s+an?(?=\s+{_MAGNITUDE}\b))", re.IGNORECASE)
FRACTION = "[\u00bc-\u00be\u2150-\u215e]"
_WITH_FRACTION = re.compile(rf"(?<!\d)(\d{{1,3}}\s|\d{{0,9}})({FRACTION})")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DATE = re.compile(
    r"(?<!\d)\d{4}[-/]\d{1,2}[-/]\d{1,2}(?!\d)|(?<!\d)\d{1,2}\.\s?\d{1,2}\.\s?\d{4}(?!\d)"
    rf"|(?<![\d.,])\d{{1,2}}(?:st|nd|rd|th)?(?:\s+of\s+|\s+|\s?-\s?){_MONTH}\b\.?(?:,?(?:\s+of\s+|\s+)\d{{4}}\b)?"
    rf"|\b{_MONTH}\b\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?!\s?[%:.]\d)(?:,?\s+\d{{4}}\b)?|\b{_MONTH}\b\.?,?(?:\s+of\s+|\s+)\d{{4}}\b",
    re.IGNORECASE,
)
_SIGN = re.compile(r"(\b[A-Z]{1,3}\$|[\u20ac\u00a3\u00a5$\u20b9])\s?$")
_CURRENCIES = {"\u20ac": "EUR", "\u00a3": "GBP", "\u00a5": "JPY", "$": "USD", "US$": "USD", "\u20b9": "INR"}
_UNITS = {
    "percent": "% percent per_cent", "year": "year years yr yrs", "month": "month months", "week": "week weeks",
    "day": "day days night nights", "hour": "hour hours hr hrs h", "minute": "minute minutes min mins",
    "second": "second seconds sec s", "decade": "decade decades", "century": "century centuries",
    "kilometer": "km kilometer kilometers kilometre kilometres", "meter": "m meter meters metre metres",
    "centimeter": "cm centimeter centimeters centimetre centimetres", "mile": "mi mile miles", "yard": "yd yard yards",
    "millimeter": "mm millimeter millimeters millimetre millimetres", "foot": "ft foot feet", "inch": "inch inches",
    "nautical_mile": "nautical_mile nautical_miles", "light_year": "light_year light_years",
    "kilogram": "kg kilogram kilograms kilo kilos", "gram": "g gram grams", "milligram": "mg milligram milligrams",
    "tonne": "t ton tons tonne tonnes metric_ton metric_tons", "pound": "lb pound pounds", "ounce": "oz ounce ounces",
    "hectare": "ha hectare hectares", "acre": "acre acres", "liter": "l L liter liters litre litres",
    "gallon": "gallon gallons", "megabyte": "MB megabyte megabytes", "gigabyte": "GB gigabyte gigabytes",
    "mile / hour": "mph", "knot": "knot knots", "degree_Celsius": "\u00b0C degrees_celsius",
    "degree_Fahrenheit": "\u00b0F degrees_fahrenheit", "kelvin": "K kelvin kelvins", "kilowatt": "kW kilowatt",
    "megawatt": "MW megawatt megawatts", "horsepower": "hp horsepower", "currency:USD": "USD dollar dollars",
    "currency:EUR": "EUR euro euros", "currency:GBP": "GBP", "currency:JPY": "JPY yen",
}  # fmt: skip
_NAMED = {name.replace("_", " "): unit for unit, names in _UNITS.items() for name in names.split()}
_LONGEST_FIRST = "|".join(map(re.escape, sorted(_NAMED, key=len, reverse=True)))
_NAME = rf"(?:{_LONGEST_FIRST}|(?i:{_LONGEST_FIRST}))"
_UNIT = re.compile(
    rf"[ \u00a0\u202f-]?(?:(?P<kind>(?i:sq|square|cu|cubic))\.?[ \u00a0])?"
    rf"(?P<name>{_NAME})(?P<raised>[23\u00b2\u00b3])?"
    rf"(?:(?:\s?/\s?|\s+per\s+)(?P<per>{_NAME})(?P<squared>[2\u00b2])?)?(?![^\W_]|/|\s+per\b)"
)
_SQUARED, _CUBED = frozenset({"sq", "square", "2", "\u00b2"}), frozenset({"cu", "cubic", "3", "\u00b3"})
_FEET = re.compile(r"['\u2032](?=\s?\d{1,2}\s?(?:\u2033|\"|''|in\b))")
_INCHES = re.compile(r"\s?(?:in\b|\u2033|\"|'')")
"""Behind feet; elsewhere, "in" is a word."""
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_AND = re.compile(r"\s*,?\s*(?:and)?\s*")
_PARTS = re.compile(rf"([:;()]\s*|,\s+(?=(?:an?|one)\s)|(?<=\d)[ \u00a0-]{_MAGNITUDE}s?\b)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number at `text[start:end]`, as written.

    `unit` is empty for a bare number, `percent`, `currency:CODE`, or an expression that Pint knows.
    """

    written: str
    start: int
    end: int
    number: float
    unit: str = ""


@lru_cache(maxsize=512)
def in_digits(text: str) -> str:
    """The text with its number words in digits; "one" stays a word, and so does a magnitude behind digits.

    >>> in_digits("They had twenty-five cats and two dogs."), in_digits("2\u00bd miles, half a million steps")
    ('They had 25 cats and 2 dogs.', '2.5 miles, 0.5 million steps')
    """
    from text_to_num import alpha2digit

    def halved(match: re.Match[str]) -> str:
        whole = str(alpha2digit(match[1] or "0", "en", 0))
        return f"{whole}.5" if whole.isdecimal() else match[0]

    # in parts, else "three: a cup and a plate" would begin with 3 and 1, and "5 hundred" would be 5 100
    parts = _PARTS.split(_HALF.sub(halved, with_decimals(text)))
    parts[::2] = [str(alpha2digit(part, "en", 2)) for part in parts[::2]]
    return "".join(parts)


def with_decimals(text: str) -> str:
    """The text with its vulgar fractions as decimals."""
    return _WITH_FRACTION.sub(lambda match: f"{int(match[1] or 0) + unicodedata.numeric(match[2]):.12g}", text)


@lru_cache(maxsize=512)
def figures(text: str) -> tuple[Figure, ...]:
    """The quantities of a text in order, without dates; number words must already be in digits (see `in_digits`).

    >>> [(figure.number, figure.unit) for figure in figures("On 4 May 2021 it was 37.5 km long.")]
    [(37.5, 'kilometer')]
    """
    dates = [match.span() for match in _DATE.finditer(text)]
    whole: list[Figure] = []
    for figure in _quantities(text):
        before = whole[-1] if whole else None
        if before is not None and before.unit != figure.unit and _AND.fullmatch(text[before.end : figure.start]):
            # the parts of a compound: 5 hours and 15 minutes, 6 feet 2 inches
            part, unit = in_unit(figure.number, figure.unit, before.unit), in_unit(1.0, figure.unit, before.unit)
            if part is not None and unit is not None and unit < 1.0 and part < 1.0:
                written = text[before.start : figure.end]
                whole[-1] = replace(before, written=written, end=figure.end, number=before.number + part)
                continue
        whole.append(figure)
    return tuple(one for one in whole if not any(start < one.end and one.start < end for start, end in dates))


def _quantities(text: str) -> Iterator[Figure]:
    position, before = 0, ""
    for match in _NUMBER.finditer(text):
        if match.start() < position:
            continue
        start, end, number, unit = match.start(), match.end(), _reading(match[0]), ""
        follows_feet = before == "foot" and _AND.fullmatch(text[position:start])
        sign = _SIGN.search(text[:start])
        if power := _POWER.match(text, end) or (_SHORT_POWER.match(text, end) if sign else None):
            number, end = number * _POWERS[power[1].lower()], power.end()
        is_year = match[0].isdigit() and 1000 <= int(match[0]) <= 2199
        behind, ordinal = _UNIT.match(text, end), _ORDINAL.match(text, end)
        if sign:
            unit, start = f"currency:{_CURRENCIES.get(sign[1], sign[1])}", start - len(sign[0])
        elif ordinal:
            end = ordinal.end()
        elif feet := _FEET.match(text, end):
            unit, end = "foot", feet.end()
        elif follows_feet and (inches := _INCHES.match(text, end)):
            unit, end = "inch", inches.end()
        elif behind and not (is_year and (behind[0] == "s" or behind["name"][:1].isupper())):
            unit, end = _expression(behind), behind.end()  # not "the 1990s", "in 1986 Stone directed"
        position, before = end, unit
        yield Figure(written=text[start:end], start=start, end=end, number=number, unit=unit)


def _expression(unit: re.Match[str]) -> str:
    """A unit as Pint writes it."""
    name, per = (_NAMED.get(one) or _NAMED.get(one.lower(), "") for one in (unit["name"], unit["per"] or ""))
    kinds = {(unit["kind"] or "").lower(), unit["raised"]}
    power = " ** 2" if kinds & _SQUARED else " ** 3" if kinds & _CUBED else ""
    return f"{name}{power}" + (f" / {per}{' ** 2' if unit['squared'] else ''}" if per else "")


def _reading(written: str) -> float:
    """The number. Of points and commas, the last is a decimal mark; alone, a comma before three digits groups them, and
    so does a mark that occurs twice.
    """
    plain = re.sub(r"['\u2019\u00a0\u202f ]", "", written)
    if "." in plain and "," in plain:
        plain = plain.replace(min(".,", key=plain.rfind), "")
    elif plain.count(".") > 1 or plain.count(",") > 1 or re.search(r",\d{3}$", plain):
        plain = re.sub("[.,]", "", plain)
    return float(plain.replace(",", "."))


@lru_cache(maxsize=4096)
def in_unit(number: float, unit: str, wanted: str) -> float | None:
    """A quantity in another unit; `None` if the units measure different things.

    >>> in_unit(5.0, "kilometer", "meter"), in_unit(5.0, "kilometer", "kilogram")
    (5000.0, None)
    """
    if unit == wanted:
        return number
    if any(not one or one == "percent" or "currency:" in one for one in (unit, wanted)):
        return None
    one, other = (_registry().parse_units(name) for name in (unit, wanted))
    if one.dimensionality != other.dimensionality:
        return None
    return float(_registry().Quantity(number, one).to(other).magnitude)


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()

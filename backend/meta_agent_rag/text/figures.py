"""The quantities in an English text, with units that Pint converts: what the loop's operators compare."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

_NUMBER = re.compile(
    r"(?<![\w.,])(?:\d{1,3}(?:([.,'\u2019\u00a0\u202f ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?)"
)
_POWERS = {"bn": 1e9, "lakh": 1e5, "crore": 1e7, "k": 1e3, "m": 1e6, "b": 1e9}
_SHORT_POWER = re.compile(r"(k|m|b)\b", re.IGNORECASE)
"""After an amount of money; elsewhere, m are metres."""
_POWER = re.compile(r"[ \u00a0]?(?:(10{3,12})(?!\d)|(bn|lakh|crore)(?![a-zA-Z]))")
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
_SIGN = re.compile(r"(US\$|[\u20ac\u00a3\u00a5$\u20b9])\s?$")
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
    "square_kilometer": "km\u00b2 square_kilometer square_kilometers square_kilometre square_kilometres",
    "square_meter": "m\u00b2 square_meter square_meters square_metre square_metres", "hectare": "ha hectare hectares",
    "square_mile": "square_mile square_miles", "square_foot": "square_foot square_feet", "acre": "acre acres",
    "liter": "l L liter liters litre litres", "gallon": "gallon gallons", "megabyte": "MB megabyte megabytes",
    "gigabyte": "GB gigabyte gigabytes", "kilometer / hour": "km/h kilometers_per_hour kilometres_per_hour",
    "mile / hour": "mph miles_per_hour", "knot": "knot knots", "degree_Celsius": "\u00b0C degrees_celsius",
    "degree_Fahrenheit": "\u00b0F degrees_fahrenheit", "kelvin": "K kelvin kelvins", "kilowatt": "kW kilowatt",
    "megawatt": "MW megawatt megawatts", "horsepower": "hp horsepower", "currency:USD": "USD dollar dollars",
    "currency:EUR": "EUR euro euros", "currency:GBP": "GBP", "currency:JPY": "JPY yen",
}  # fmt: skip
_NAMED = {name.replace("_", " "): unit for unit, names in _UNITS.items() for name in names.split()}
_LONGEST_FIRST = "|".join(map(re.escape, sorted(_NAMED, key=len, reverse=True)))
_UNIT = re.compile(rf"[ \u00a0\u202f-]?(?:(?P<symbol>{_LONGEST_FIRST})|(?i:(?P<name>{_LONGEST_FIRST})))(?![^\W\d_])")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_AND = re.compile(r"\s*,?\s*(?:and)?\s*")
_PARTS = re.compile(r"([:;()]\s*|,\s+(?=(?:an?|one)\s))", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number at `text[start:end]`, as written.

    `unit` is empty for a bare number, `percent`, `currency:CODE`, or a name that Pint knows.
    """

    written: str
    start: int
    end: int
    number: float
    unit: str = ""


@lru_cache(maxsize=512)
def in_digits(text: str) -> str:
    """The text with its number words in digits; "one" stays a word.

    >>> in_digits("They had twenty-five cats and two dogs.")
    'They had 25 cats and 2 dogs.'
    """
    from text_to_num import alpha2digit

    # in parts, else "three: a cup and a plate" would begin with 3 and 1
    parts = _PARTS.split(text)
    parts[::2] = [str(alpha2digit(part, "en", 2)) for part in parts[::2]]
    return "".join(parts)


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
    position = 0
    for match in _NUMBER.finditer(text):
        if match.start() < position:
            continue
        start, end, number, unit = match.start(), match.end(), _reading(match[0]), ""
        sign = _SIGN.search(text[:start])
        if power := _POWER.match(text, end):
            number, end = number * (_POWERS.get(power[2]) or float(power[1])), power.end()
        elif sign and (power := _SHORT_POWER.match(text, end)):
            number, end = number * _POWERS[power[1].lower()], power.end()
        is_year = match[0].isdigit() and 1000 <= int(match[0]) <= 2199
        behind, ordinal = _UNIT.match(text, end), _ORDINAL.match(text, end)
        if sign:
            unit, start = f"currency:{_CURRENCIES[sign[1]]}", start - len(sign[0])
        elif ordinal:
            end = ordinal.end()
        elif behind:
            name = behind["symbol"] or behind["name"]
            if not (is_year and (behind[0] == "s" or name[:1].isupper())):  # "the 1990s", "in 1986 Stone directed"
                unit, end = _NAMED.get(name) or _NAMED.get(name.lower(), ""), behind.end()
        position = end
        yield Figure(written=text[start:end], start=start, end=end, number=number, unit=unit)


def _reading(written: str) -> float:
    """The number; a comma before three digits groups them, and so do several points."""
    plain = re.sub(r"['\u2019\u00a0\u202f ]", "", written)
    grouped = re.sub(r",(?=\d{3}(?:\D|$))", "", plain)
    if grouped.count(".") > 1:
        grouped = grouped.replace(".", "")
    return float(grouped.replace(",", "."))


@lru_cache(maxsize=4096)
def in_unit(number: float, unit: str, wanted: str) -> float | None:
    """A quantity in another unit; `None` if the units measure different things.

    >>> in_unit(5.0, "kilometer", "meter"), in_unit(5.0, "kilometer", "kilogram")
    (5000.0, None)
    """
    if unit == wanted:
        return number
    if any(not one or one == "percent" or one.startswith("currency:") for one in (unit, wanted)):
        return None
    # Pint writes powers as words of their own
    one, other = (_registry().parse_units(name.replace("square_", "square ")) for name in (unit, wanted))
    if one.dimensionality != other.dimensionality:
        return None
    return float(_registry().Quantity(number, one).to(other).magnitude)


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()

"""The quantities in an English text, with units that Pint converts: what the loop's operators compare."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

CLOCK = "clock"
"""The unit of a time of day, in minutes since midnight."""
_NUMBER = re.compile(
    r"(?<![\w.,])(?:\d{1,3}(?:([.,'\u2019\u00a0\u202f ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?)"
)
_POWERS = {"bn": 1e9, "lakh": 1e5, "crore": 1e7}
_POWER = re.compile(r"[ \u00a0]?(?:(10{3,12})(?!\d)|(bn|lakh|crore)(?![a-zA-Z]))")
_CLOCK = re.compile(
    r"(?<![\d:])(?<!\d[.,])(?P<h>[01]?\d|2[0-3])(?:[:.](?P<m>[0-5]\d))?\s?(?P<half>[ap])\.?m\b\.?"
    r"|(?<![\d:])(?<!\d[.,])(?P<h2>[01]?\d|2[0-4]):(?P<m2>[0-5]\d)(?![\d:])",
    re.IGNORECASE,
)
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
_UP_TO = re.compile(r"\s*(?:,|to|and|or|-|\u2013|~)\s*")
_MULTIPLES = {"twice": 2.0, "thrice": 3.0, "double": 2.0, "doubled": 2.0, "triple": 3.0, "tripled": 3.0, "half": 0.5}
_MULTIPLE = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(_MULTIPLES, key=len, reverse=True))})(?!-?\w)", re.IGNORECASE)
_IN_WORDS = (
    (re.compile(r"\b(?:an?|one|1)\s+(hour|day|week|month|year|mile)\s+and\s+a\s+half\b", re.IGNORECASE), r"1.5 \1s"),
    (re.compile(r"(\d+)\s+and\s+a\s+half\b", re.IGNORECASE), r"\1.5"),
    (re.compile(r"\b(?:half\s+a|a\s+half)\s+dozen\b", re.IGNORECASE), "6"),
    (re.compile(r"\ban?\s+dozen\b", re.IGNORECASE), "12"),
    (re.compile(r"\b(\d+)(?:st|nd|rd|th)\s+(?=anniversary|birthday)"), r"\1 years "),
)
_PARTS = re.compile(r"([:;()]\s*|,\s+(?=(?:an?|one)\s))", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number at `text[start:end]`, as written.

    `unit` is empty for a bare number, `percent`, `currency:CODE`, `clock`, or a name that Pint knows.
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
    text = "".join(parts)
    for pattern, digits in _IN_WORDS:
        text = pattern.sub(digits, text)
    return text


@lru_cache(maxsize=512)
def figures(text: str) -> tuple[Figure, ...]:
    """The quantities of a text in order, without dates; number words must already be in digits (see `in_digits`).

    >>> [(figure.number, figure.unit) for figure in figures("On 4 May 2021 it was 37.5 km long.")]
    [(37.5, 'kilometer')]
    """
    taken = [match.span() for match in _DATE.finditer(text)]
    found: list[Figure] = []
    for figure in (
        *_times(text),
        *_with_units_shared(text, _compounds(text, list(_quantities(text)))),
        *_multiples(text),
    ):
        if not any(start < figure.end and figure.start < end for start, end in taken):
            found.append(figure)
            taken.append((figure.start, figure.end))
    return tuple(sorted(found, key=lambda figure: figure.start))


def _times(text: str) -> Iterator[Figure]:
    for match in _CLOCK.finditer(text):
        hour, minute = int(match["h"] or match["h2"]), int(match["m"] or match["m2"] or 0)
        if match["half"]:
            hour = hour % 12 + (12 if match["half"].lower() == "p" else 0)
        number = 60.0 * hour + minute
        yield Figure(written=match[0], start=match.start(), end=match.end(), number=number, unit=CLOCK)


def _quantities(text: str) -> Iterator[Figure]:
    position = 0
    for match in _NUMBER.finditer(text):
        if match.start() < position:
            continue
        start, end, number, unit = match.start(), match.end(), _reading(match[0]), ""
        if power := _POWER.match(text, end):
            number, end = number * (_POWERS.get(power[2]) or float(power[1])), power.end()
        if sign := re.search(r"(US\$|[\u20ac\u00a3\u00a5$\u20b9])\s?$", text[:start]):
            unit, start = f"currency:{_CURRENCIES[sign[1]]}", start - len(sign[0])
        elif (behind := _UNIT.match(text, end)) and not _ORDINAL.match(text, end) and not _is_no_unit(behind, match[0]):
            name = behind["symbol"] or behind["name"]
            unit, end = _NAMED.get(name) or _NAMED.get(name.lower(), ""), behind.end()
        elif ordinal := _ORDINAL.match(text, end):
            end = ordinal.end()
        position = end
        yield Figure(written=text[start:end], start=start, end=end, number=number, unit=unit)


def _reading(written: str) -> float:
    """The number; a comma before three digits groups them, and so do several points."""
    plain = re.sub(r"['\u2019\u00a0\u202f ]", "", written)
    grouped = re.sub(r",(?=\d{3}(?:\D|$))", "", plain)
    if grouped.count(".") > 1:
        grouped = grouped.replace(".", "")
    return float(grouped.replace(",", "."))


def _is_no_unit(behind: re.Match[str], written: str) -> bool:
    """Whether it only looks like a unit, after a year: "the 1990s", "in 1986 Stone directed"."""
    if not (written.isdigit() and 1000 <= int(written) <= 2199):
        return False
    name = behind["symbol"] or behind["name"]
    return behind[0] == "s" or name[:1].isupper()


def _compounds(text: str, quantities: list[Figure]) -> list[Figure]:
    """The quantities, with compound ones combined: 5 hours and 15 minutes, 6 feet 2 inches."""
    joined: list[Figure] = []
    for figure in quantities:
        whole = joined[-1] if joined else None
        if whole is not None and whole.unit != figure.unit and _AND.fullmatch(text[whole.end : figure.start]):
            part, unit = in_unit(figure.number, figure.unit, whole.unit), in_unit(1.0, figure.unit, whole.unit)
            if part is not None and unit is not None and unit < 1.0 and part < 1.0:
                written = text[whole.start : figure.end]
                joined[-1] = replace(whole, written=written, end=figure.end, number=whole.number + part)
                continue
        joined.append(figure)
    return joined


def _with_units_shared(text: str, quantities: list[Figure]) -> list[Figure]:
    """The quantities; a unit or a million written once applies to all: 48.0 to 51.6 million euros."""
    shared: list[Figure] = []
    for figure in reversed(quantities):
        following = shared[-1] if shared else None
        is_year = figure.written.isdigit() and 1000 <= figure.number <= 2199
        bare = not figure.unit and not is_year and figure.written[-1].isdigit()
        if following is not None and bare and following.unit and _UP_TO.fullmatch(text[figure.end : following.start]):
            power = _POWER.search(following.written)
            factor = (_POWERS.get(power[2]) or float(power[1])) if power else 1.0
            figure = replace(figure, unit=following.unit, number=figure.number * factor)  # noqa: PLW2901
        shared.append(figure)
    return shared[::-1]


def _multiples(text: str) -> Iterator[Figure]:
    """Words such as "twice" and "half"."""
    for match in _MULTIPLE.finditer(text):
        yield Figure(written=match[0], start=match.start(), end=match.end(), number=_MULTIPLES[match[0].lower()])


@lru_cache(maxsize=4096)
def in_unit(number: float, unit: str, wanted: str) -> float | None:
    """A quantity in another unit; `None` if the units measure different things.

    >>> in_unit(5.0, "kilometer", "meter"), in_unit(5.0, "kilometer", "kilogram")
    (5000.0, None)
    """
    if unit == wanted:
        return number
    if not _measurable(unit) or not _measurable(wanted):
        return None
    one, other = _parsed(unit), _parsed(wanted)
    if one.dimensionality != other.dimensionality:
        return None
    return float(_registry().Quantity(number, one).to(other).magnitude)


def _measurable(unit: str) -> bool:
    return bool(unit) and unit not in {CLOCK, "percent"} and not unit.startswith("currency:")


def _parsed(unit: str) -> Any:
    """The unit parsed by Pint, which writes powers as words of their own."""
    return _registry().parse_units(unit.replace("square_", "square "))


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()

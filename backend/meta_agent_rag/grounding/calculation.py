"""Reads the figures of a text, and evaluates the calculations that a critic writes for figures that follow from others.

A calculation is a line such as `2 * 34 + 3 * 12 = 104`, with dates as `2021-07-12` and times as `19:30`; several are
separated by semicolons. It counts only if it is right, if its operands occur in the passages, and if it says more than
that a figure equals itself.
"""

import ast
import operator
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import islice, product
from math import isclose
from types import MappingProxyType

_GROUPED = r"\d{1,3}(?:[.,'\u2019\u00a0\u202f ]\d{3})+(?:[.,]\d+)?(?![\d])"
_NUMBER = re.compile(rf"(?<![\d.,:]){_GROUPED}|\d+(?:[.,:]\d+)*")
_PART_NUMBER = re.compile(r"\b[A-Za-z]+[-/]?\d[\w/.-]*|\b\d+[A-Za-z]+\d\w*")
_SPOKEN = ("en", "de", "fr", "es", "it", "pt", "nl")
"""Languages whose number words text2num reads; a text is read in all of them."""
_NUMERALS = re.compile(r"[\u3007\u4e00\u4e8c\u4e24\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u767e\u5343]+")
_TENS = {"\u5341": 10, "\u767e": 100, "\u5343": 1000}
_FACTORS = frozenset(
    {24.0, 28.0, 29.0, 30.0, 31.0, 52.0, 60.0, 100.0, 365.0, 366.0, 1000.0, 3600.0, 10_000.0, 1_000_000.0}
    | {1.6, 1.609, 0.62, 0.621, 3.28, 3.281, 0.3048, 2.54, 2.2, 2.205, 0.454, 2.471, 0.405, 1.8, 32.0}
)
"""Numbers that a calculation may use although no passage has them: they convert units, or are days of a month."""
_COUNTED = 12
"""Whole numbers up to this one may be what was counted in the passages."""
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_TIME = re.compile(r"(?<![\d:])([01]?\d|2[0-4]):([0-5]\d)(?![\d:])")
_DOTTED_TIME = re.compile(r"([01]?\d|2[0-4])\.([0-5]\d)")
_SPELT_TIME = re.compile(r"(?<![\d.,])(\d{1,2})\s?[.h\u6642\u70b9\u65f6]\s?([0-5]\d)(?!\d)")
_SIGNS = str.maketrans({"\u00d7": "*", "\u00b7": "*", "\u00f7": "/", "\u2212": "-", "\u2013": "-", "\u2248": "="})
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
)
_LONGEST, _MOST_READINGS = 200, 64


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number in digits, as written, with its possible values: `1,260` may be 1260 or 1.26; for times see `_clock`."""

    written: str
    values: tuple[float, ...]
    step: float = 1.0

    def is_among(self, others: Collection[float]) -> bool:
        """Whether one of its values is one of the others."""
        return any(isclose(own, other, rel_tol=1e-9) for own in self.values for other in others)

    def rounds(self, result: float) -> bool:
        """Whether it is a result as precisely as it is written."""
        return any(abs(own - result) <= self.step / 2 + 1e-9 * abs(result) for own in self.values)


def figures(text: str) -> tuple[Figure, ...]:
    """The numbers of a text that are written in digits.

    >>> [figure.values for figure in figures("In 2021 it cost 1,260.50 euros.")]
    [(2021.0,), (1260.5,)]
    """
    return tuple(_figure(match[0]) for match in _NUMBER.finditer(unicodedata.normalize("NFKC", text)))


def _figure(written: str) -> Figure:
    time = _TIME.fullmatch(written) or _DOTTED_TIME.fullmatch(written)
    minutes = (_clock(time[1], time[2]),) if time else ()
    if ":" in written:
        return Figure(written=written, values=minutes)
    plain = re.sub(r"['\u2019\u00a0\u202f ]", "", written)
    grouped = re.sub(r"[.,](?=\d{3}(?:[.,]|$))", "", plain)
    readings = [grouped.replace(",", ".")] if re.fullmatch(r"\d+(?:[.,]\d+)?", grouped) else []
    if re.fullmatch(r"\d+[.,]\d+", plain):
        readings.append(plain.replace(",", "."))
    decimals = len(re.split(r"[.,]", readings[-1])[1]) if readings and "." in readings[-1] else 0
    return Figure(written=written, values=(*dict.fromkeys(map(float, readings)), *minutes), step=10.0**-decimals)


def _clock(hour: str | int, minute: str) -> float:
    """A time of day as a value of its own, below zero, so that it is not taken for a number."""
    return -1.0 - 60 * int(hour) - int(minute)


def _plain_number(value: float) -> float:
    """A value as it enters a calculation: a time as minutes."""
    return value if value >= 0 else -1.0 - value


def without_codes(text: str, known: str) -> str:
    """The text without part numbers and the like ("KX-40") that occur in a known one, whose digits are no figures."""
    return _PART_NUMBER.sub(lambda code: " " if code[0] in known else code[0], unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=1024)
def values_in(text: str) -> frozenset[float]:
    """Every number of a text in digits, and the hour and the minute of a time; no digits of part numbers ("KX-40")."""
    plain = _PART_NUMBER.sub(" ", unicodedata.normalize("NFKC", text))
    found = {value for figure in figures(plain) for value in figure.values}
    found |= {float(part) for match in _NUMBER.finditer(plain) for part in re.findall(r"\d+", match[0])}
    for hour, minute in (*_TIME.findall(plain), *_SPELT_TIME.findall(plain)):
        found |= {_clock(hour, minute), float(int(hour) % 12), _clock(int(hour) % 12, minute)}
    return frozenset(found)


@lru_cache(maxsize=1024)
def spoken_values_in(text: str) -> frozenset[float]:
    """Every number of a text, in digits or in words of the languages that text2num reads, or as a numeral."""
    from text_to_num import alpha2digit

    spoken = (str(alpha2digit(text, language, 0)) for language in _SPOKEN)
    found = {value for one in spoken for value in values_in(one)}
    return frozenset(found | values_in(text) | {_numeral(signs) for signs in _NUMERALS.findall(text)})


def _numeral(signs: str) -> float:
    """The value of a Chinese or Japanese numeral."""
    if not set(signs) & _TENS.keys():
        return float("".join(str(_digit(sign)) for sign in signs))
    value = digit = 0
    for sign in signs:
        if sign in _TENS:
            value, digit = value + max(digit, 1) * _TENS[sign], 0
        else:
            digit = _digit(sign)
    return float(value + digit)


def _digit(sign: str) -> int:
    return 2 if sign == "\u4e24" else int(unicodedata.numeric(sign))


@dataclass(frozen=True, kw_only=True)
class Calculation:
    """A calculation that is right; `written` shows it, and `operands` are the numbers that it uses."""

    written: str
    operands: tuple[float, ...]
    results: tuple[float, ...]


def calculated(text: str, known: Collection[float]) -> tuple[Calculation, ...]:
    """The calculations of a text that are right, and whose operands are known or results of those before.

    >>> [one.written for one in calculated("2 x 34 + 36 = 104; 104 - 0 = 104", {34.0, 36.0})]
    ['2 \u00d7 34 + 36 = 104']
    """
    found: list[Calculation] = []
    for step in re.split(r"[;\n]|,\s(?=[^=,;]*[-+*/\u00d7\u00f7\u2212][^=;]*=)", text):
        right = _right(step) if len(step) <= _LONGEST else None
        results = {value for one in found for value in one.results}
        if right is not None and _follows(right, known, results):
            found.append(right)
    return tuple(found)


def _right(step: str) -> Calculation | None:
    """The calculation of a line, if both of its sides have the same value."""
    sides = [_plain(side) for side in step.translate(_SIGNS).split("=")]
    sides = [side for side in sides if any(map(str.isdigit, side))]
    left = next((side for side in sides if _is_expression(side)), None)
    rights = [side for side in sides if side is not left]
    if left is None or not rights:
        return None
    given = [one for side in rights for one, _ in islice(_readings(side), _MOST_READINGS)]
    for value, operands in _readings(left):
        # a difference of times is in minutes, a share may be given in per cent
        also = (value / 60.0, -1.0 - value) if ":" in left else (100.0 * value,) if "%" in rights[-1] else ()
        rounded = [figure for side in rights for figure in figures(side) if any(map(figure.rounds, (value, *also)))]
        results = [one for one in given if any(isclose(one, own, rel_tol=5e-3) for own in (value, *also))]
        if results or rounded:
            written = f"{_shown(left)} = {_shown(rights[-1])}"
            own = (value, *also, *results, *(one for figure in rounded for one in figure.values))
            return Calculation(written=written, operands=operands, results=own)
    return None


def _plain(side: str) -> str:
    """A side with digits and signs alone, without units, currencies and remarks."""
    plain = unicodedata.normalize("NFKC", side)
    plain = re.sub(r"(?<=[\d)\s])[xX](?=[\s\d(])", "*", plain)
    plain = re.sub(r"(?<=\s):(?=\s)", "/", plain)
    plain = re.sub(r"\([^()\d]*\)|[^\W\d_]+[\u00b2\u00b3]?|[^\w\s.,:()+*/%-]|_", " ", plain)
    plain = re.sub(r"/(?=\s*(?:[-+*/)]|$))|^\s*[*/+]|[.,:](?!\d)", " ", plain)
    return " ".join(plain.split())


def _is_expression(side: str) -> bool:
    return re.search(r"[\d)%]\s*[-+*/]\s*[\d(]", _ISO.sub("0", side)) is not None


def _readings(side: str) -> Iterator[tuple[float, tuple[float, ...]]]:
    """The values of a side, by the readings of its numbers, each with these numbers."""
    template, choices = "", list[tuple[float, ...]]()
    position = 0
    for match in re.finditer(rf"{_ISO.pattern}|{_NUMBER.pattern}", side):
        values = _date(match[0]) or _figure(match[0]).values
        template += side[position : match.start()].replace("%", "/100") + "{}"
        choices.append(values)
        position = match.end()
    template += side[position:].replace("%", "/100")
    if "{" in template.replace("{}", "") or not all(choices):
        return
    for chosen in islice(product(*choices), _MOST_READINGS):
        value = _evaluated(template.format(*(f"({_plain_number(one)!r})" for one in chosen)))
        if value is not None:
            yield value, chosen


def _date(written: str) -> tuple[float, ...]:
    """The number of a day, counted from the first; empty for something else."""
    match = _ISO.fullmatch(written)
    try:
        return (float(date(*map(int, match.groups())).toordinal()),) if match else ()
    except ValueError:
        return ()


def _evaluated(expression: str) -> float | None:
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except (ArithmeticError, SyntaxError, RecursionError):
        return None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=float(number) | int(number)):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_value(left), _value(right))
    raise SyntaxError("Not a calculation.")


def _follows(one: Calculation, known: Collection[float], results: Collection[float]) -> bool:
    """Whether a calculation uses numbers of the passages, and does not merely repeat one of them."""
    given = [_is_known(operand, known) or operand in results for operand in one.operands]
    free = [operand in _FACTORS or (operand == int(operand) and 1 <= operand <= _COUNTED) for operand in one.operands]
    repeats = len(one.operands) == 2 and any(isclose(one.results[0], operand) for operand in one.operands)
    return any(given) and not repeats and all(map(operator.or_, given, free))


def _is_known(operand: float, known: Collection[float]) -> bool:
    first_day = 365_000
    if operand < first_day:
        return operand in known
    day = date.fromordinal(int(operand))
    return float(day.day) in known


def _shown(side: str) -> str:
    """A side as a reader knows it, with blanks around its signs; the hyphens of dates are left alone."""
    spaced = re.sub(rf"{_ISO.pattern}|\s*([-+*/])\s*", lambda match: _READABLE.get(match[4], match[0]), side)
    return " ".join(spaced.split())


_READABLE = {"+": " + ", "-": " \u2212 ", "*": " \u00d7 ", "/": " \u00f7 "}

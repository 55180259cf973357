"""Parses looked-up values into dates, quantities, countries, names and verdicts, so that code can compare them.

Dates are read by `text.dates`, quantities by `text.figures`, countries and their demonyms by countryinfo.
"""

import math
import re
from dataclasses import dataclass
from functools import cache

from ...grounding.answer_kind import kind_asked
from ...grounding.short_answer import same_answer
from ...text.dates import as_date, is_date, later
from ...text.figures import Figure, figures, in_digits, in_unit
from ...text.normalise import normalised

_MINUS = re.compile(r"(?:^|[\s(])(?:[-\u2212\u2013]|minus\s+)\s?$", re.IGNORECASE)
_ROUNDED = 0.01
"""The relative difference up to which quantities in different units may be one."""
_DEMONYM_SEPARATORS = re.compile(r"\s*(?:-|\u2013|/|,|\band\b)\s*")


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number and its unit, as `text.figures` names it; `unit` is empty for a bare count."""

    number: float
    unit: str = ""


def numbers_in(text: str) -> frozenset[float]:
    """Every number of a text, written in digits or words."""
    return frozenset(figure.number for figure in _figures(text))


def as_quantity(text: str) -> Quantity | None:
    """The first number of a text with its sign and unit, or `None`.

    >>> as_quantity("$3.5 million"), as_quantity("-5 °C")
    (Quantity(number=3500000.0, unit='currency:USD'), Quantity(number=-5.0, unit='degree_Celsius'))
    """
    figure = next(iter(_figures(text)), None)
    if figure is None:
        return None
    below_zero = _MINUS.search(in_digits(text)[: figure.start]) is not None
    return Quantity(number=-figure.number if below_zero else figure.number, unit=figure.unit)


def _figures(text: str) -> tuple[Figure, ...]:
    return figures(in_digits(text))


def countries(text: str) -> frozenset[str]:
    """The countries that a value names, as ISO codes: by name, by demonym, or several joined by a hyphen.

    >>> countries("American") == countries("United States"), sorted(countries("British-Canadian"))
    (True, ['CA', 'GB'])
    """
    known = _country_codes()
    whole = known.get(normalised(text))
    if whole:
        return frozenset({whole})
    codes = [known.get(normalised(part)) for part in _DEMONYM_SEPARATORS.split(text) if part.strip()]
    return frozenset(code for code in codes if code) if codes and all(codes) else frozenset()


def country_names(text: str) -> frozenset[str]:
    """All names and demonyms, normalised, of the countries that a value names; they are interchangeable."""
    wanted = countries(text)
    return frozenset(name for name, code in _country_codes().items() if code in wanted)


@cache
def _country_codes() -> dict[str, str]:
    from countryinfo import all_countries

    by_size = sorted(all_countries(), key=lambda one: -(one.info().get("population") or 0))
    codes = {"us": "US", "uk": "GB", "england": "GB", "english": "GB", "south korean": "KR"}
    for country in by_size:  # a demonym of several countries ("American") is assigned to the most populous one
        info = country.info()
        code = info.get("ISO", {}).get("alpha2", "")
        names = [info.get("name"), info.get("demonym"), info.get("nativeName"), *info.get("altSpellings", ())]
        for name in names:
            if name and len(name) > 2 and code:
                codes.setdefault(normalised(name), code)
    return codes


def same_value(one: str, other: str) -> bool | None:
    """Whether two values are the same. Compared as countries, dates, quantities with units, and finally as names.

    `None` if they cannot be compared: one date is less precise than the other, or one quantity may be the other
    converted and rounded.
    """
    left, right = countries(one), countries(other)
    if left and right:
        return bool(left & right)
    first, second = as_date(one), as_date(other)
    if first is not None and second is not None and (is_date(one) or is_date(other) or (first.day and second.day)):
        if later(first, second) is not None:
            return False
        return True if first == second else None
    quantity, another = _whole_quantity(one), _whole_quantity(other)
    # without a unit, a number may be a title, a version or an ordinal
    if quantity is not None and another is not None and quantity.unit and another.unit:
        number = in_unit(another.number, another.unit, quantity.unit)
        if number is not None:
            is_near = math.isclose(quantity.number, number, rel_tol=_ROUNDED)
            exactly = math.isclose(quantity.number, number, rel_tol=1e-6, abs_tol=1e-9)
            return None if is_near and not exactly and quantity.unit != another.unit else exactly
    return same_answer(one, other) or normalised(in_digits(one)) == normalised(in_digits(other))


def _whole_quantity(text: str) -> Quantity | None:
    """The quantity that a text consists of."""
    plain = in_digits(text).strip(" .-\u2212")
    return as_quantity(text) if any(figure.written == plain for figure in _figures(text)) else None


def asks_yes_or_no(question: str) -> str | None:
    """The fault of a plan whose operator answers yes or no although the question does not ask for that."""
    return None if kind_asked(question) == "verdict" else "the question does not ask for a yes or no"


_CLOSED = re.compile(r"\s*(?:is|are|was|were|do|does|did|has|have|had|can)\b(?!.*\bor\b)", re.IGNORECASE)


def is_closed(fact: str) -> bool:
    """Whether a fact is a yes-or-no question. Facts are short English questions, so their first word decides.

    >>> is_closed("Is Salt Road a film?"), is_closed("Who directed Salt Road?")
    (True, False)
    """
    return bool(_CLOSED.match(fact))


def verdict(value: str) -> bool | None:
    """A value as a yes or no; `None` if it is neither.

    >>> verdict("Yes, it is."), verdict("Norway")
    (True, None)
    """
    said = normalised(value).split()
    return {"yes": True, "no": False}.get(said[0]) if said else None

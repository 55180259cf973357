"""Names of months, units and currencies in all languages of `text.language`, from Unicode's CLDR via Babel."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from ..language import LANGUAGES

PERCENT = "percent"
_LOCALES = (*LANGUAGES, "en_GB")
_EVERYDAY = ("length", "mass", "volume", "area", "duration", "digital", "speed", "power", "energy", "temperature")
_SHORTEST_SYMBOL = 2
_SIGNS = frozenset({"ja", "zh", "ko"})
"""Languages in which unit symbols may be a single character, e.g. 米."""


@cache
def months() -> Mapping[str, int]:
    """Lower-case month names, full and abbreviated, with the month's number from 1."""
    found: dict[str, int] = {}
    for code in _LOCALES:
        for context in ("format", "stand-alone"):
            for width in ("wide", "abbreviated") if code.startswith("en") else ("wide",):
                for number, name in _locale(code).months[context][width].items():
                    if name.strip(".").isalpha():
                        found.setdefault(name.lower().strip("."), number)
    return found


@cache
def weekdays() -> Mapping[str, int]:
    """Lower-case names of the days of the week, in full, with the day's number from Monday, 0."""
    found: dict[str, int] = {}
    for code in _LOCALES:
        for context in ("format", "stand-alone"):
            for number, name in _locale(code).days[context]["wide"].items():
                found.setdefault(name.lower(), number)
    return found


@cache
def unit_names() -> Mapping[str, str]:
    """Lower-case unit names with the unit: `percent`, `currency:CODE` or a name that Pint knows."""
    return _with_own({name: unit for code in _LOCALES for unit, name in _patterns(code, "long")}, "names")


@cache
def unit_symbols() -> Mapping[str, str]:
    """Case-sensitive unit symbols (`MB`), with the unit as in `unit_names`."""
    found = {
        symbol: unit
        for code in _LOCALES
        for width in ("short", "narrow")
        for unit, symbol in _patterns(code, width)
        if len(symbol) >= _SHORTEST_SYMBOL or code in _SIGNS
    }
    return {**_with_own(found, "symbols"), **currency_symbols()}


def _with_own(found: Mapping[str, str], kind: str) -> Mapping[str, str]:
    withheld = {str(name) for name in _own()["no_units"]}
    kept = {name: unit for name, unit in found.items() if name.lower() not in withheld}
    return kept | {str(name): unit for name, unit in _own()[kind].items()}


def _patterns(code: str, width: str) -> Iterator[tuple[str, str]]:
    for name, widths in _locale(code)._data["unit_patterns"].items():  # Babel has no public list of them
        forms = widths.get(width) if (unit := _pint_name(name)) else None
        for form, pattern in forms.items() if isinstance(forms, Mapping) else ():
            written = pattern.replace("{0}", "").strip("\u200f\u200e \u00a0\u202f").rstrip(".")
            if form != "per" and written and "{" not in written:
                yield unit, written.lower() if width == "long" else written


def _pint_name(name: str) -> str:
    """Pint's name for a CLDR unit, e.g. `square_meter` for `area-square-meter`; empty for rarely used quantities."""
    family, _, unit = name.partition("-")
    if unit == "percent":
        return PERCENT
    if family not in _EVERYDAY or unit.endswith("person"):
        return ""
    plain = unit.replace("-per-", " / ").replace("square-", "square_").replace("cubic-", "cubic_").replace("-", "_")
    return str(_own()["pint"].get(plain, plain))


@cache
def currency_symbols() -> Mapping[str, str]:
    """Symbols and codes before or after an amount, with their unit: `£` is `currency:GBP`."""
    symbols: Mapping[str, str] = _locale("en").currency_symbols
    found = {sign: f"currency:{code}" for code, sign in symbols.items() if not sign[-1].isalnum()}
    return found | {"$": "currency:USD"} | {code: f"currency:{code}" for code in _own()["currencies"]}


@cache
def multipliers() -> Mapping[str, float]:
    """Words and signs for powers of ten that follow a number, e.g. `万`."""
    return {str(name): float(value) for name, value in _own()["multipliers"].items()}


@cache
def multiples() -> Mapping[str, float]:
    """Lower-case words for multiples or fractions: `twice` is 2."""
    return {str(name): float(value) for name, value in _own()["multiples"].items()}


@cache
def shares() -> Mapping[str, Mapping[str, str]]:
    """By language, patterns of shares in words, with the percentages that they become."""
    rows: Mapping[str, Mapping[str, str]] = _own()["shares"]
    return rows


@cache
def mixed() -> Mapping[str, Mapping[str, str]]:
    """By language, patterns of numbers with a fraction, with the decimals that they become."""
    rows: Mapping[str, Mapping[str, str]] = _own()["mixed"]
    return rows


@cache
def times() -> Mapping[str, Mapping[str, Any]]:
    """By language, words for times of day: see `lexicon.yaml`."""
    rows: Mapping[str, Mapping[str, Any]] = _own()["times"]
    return rows


@cache
def approximators() -> frozenset[str]:
    """Words that say that a number is not exact."""
    return frozenset(str(word) for word in _own()["approximators"])


def alternation(names: Iterable[str]) -> str:
    """The names as alternatives of a regular expression, the longest first."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


@cache
def _own() -> Mapping[str, Any]:
    text = files(__package__).joinpath("lexicon.yaml").read_text(encoding="utf-8")
    rows: Mapping[str, Any] = yaml.safe_load(text)
    return rows


@cache
def _locale(code: str) -> Any:
    from babel import Locale

    return Locale.parse(code)

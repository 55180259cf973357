"""Short answers as data sets write them: the bare name, date, number or title."""

import re
from collections.abc import Iterable

from ..text.normalise import as_quoted, normalised

_BRACKETED_END = re.compile(r"(.*\S)\s*\([^()]+\)\s*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CURRENCY = re.compile(r"[$€£](?=\.?\d)")
_MINUS = re.compile(r"(?<!\d )(?<![\w)])(?:-|\bminus )(?=\.?\d)", re.IGNORECASE)
_DECIMAL = re.compile(r"(?<![\w.,:])(\d*)(?:\.|(?<=\d),(?=\d\d?(?!\d)))(\d+)(?![.,:]?\d)")
_PAIR = re.compile(r"(?<![\w.,:-])(\d{1,2})(?: ?- ?|:)(\d{1,2})(?![\w:-])")
_MAGNITUDE = re.compile(r"(?<=\d) (?=(?:hundred|thousand|million|billion|trillion)\b)", re.IGNORECASE)


def without_disambiguation(short_answer: str, titles: Iterable[str]) -> str:
    """The answer without the bracket that an encyclopedia adds to a title: "Sleepy Hollow (film)" is the film's title.

    Applies only if the answer, bracket included, is the title of a passage: "125 lb (57 kg)" is kept.

    >>> without_disambiguation("Sleepy Hollow (film)", ["Sleepy Hollow (film)", "Miles Doleac"])
    'Sleepy Hollow'
    """
    found = _BRACKETED_END.fullmatch(short_answer)
    whole = normalised(short_answer)
    return found[1] if found and any(normalised(title) == whole for title in titles) else short_answer


def same_answer(one: str, other: str) -> bool:
    """Do two short answers agree: the same words, or all words of one within the other, in order?

    >>> same_answer("Gatwick", "Gatwick Airport"), same_answer("CBS", "NBC"), same_answer("5", "5,000")
    (True, False, False)
    """
    shorter, longer = sorted((_with_whole_numbers(one), _with_whole_numbers(other)), key=len)
    if longer.startswith(("not ", "never ")) and not shorter.startswith(("not ", "never ")):
        return False
    return bool(shorter) and f" {shorter} " in f" {longer} "


def _with_whole_numbers(short_answer: str) -> str:
    """Normalised, with a number, score or ratio as one word: 5,000 as 5000, 5.0 as 5, 3.5 neither a 3 nor a 5."""
    text = _CURRENCY.sub("", _THOUSANDS.sub("", as_quoted(short_answer).replace("\u2212", "-")))
    text = _PAIR.sub(r"\1to\2", _DECIMAL.sub(_decimal, text))
    return normalised(_MINUS.sub("minus", _MAGNITUDE.sub("", text)))


def _decimal(number: re.Match[str]) -> str:
    whole, part = number[1] or "0", number[2]
    return f"{whole}point{part}" if part.strip("0") else whole

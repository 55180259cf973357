"""Short answers as data sets write them: the bare name, date, number or title."""

import re
from collections.abc import Iterable

from .normalise import normalised

_BRACKETED_END = re.compile(r"(.*\S)\s*\([^()]+\)\s*")


def without_disambiguation(short_answer: str, titles: Iterable[str]) -> str:
    """The answer without the bracket that an encyclopedia adds to a title: "Sleepy Hollow (film)" is the film's title.

    Only where the answer, bracket included, is the title of a passage: "125 lb (57 kg)" stays.

    >>> without_disambiguation("Sleepy Hollow (film)", ["Sleepy Hollow (film)", "Miles Doleac"])
    'Sleepy Hollow'
    """
    found = _BRACKETED_END.fullmatch(short_answer)
    whole = normalised(short_answer)
    return found[1] if found and any(normalised(title) == whole for title in titles) else short_answer


def same_answer(one: str, other: str) -> bool:
    """Do two short answers say the same: the same words, or all words of one within the other, in their order?

    >>> same_answer("Gatwick", "Gatwick Airport"), same_answer("CBS", "NBC")
    (True, False)
    """
    shorter, longer = sorted((normalised(one), normalised(other)), key=len)
    return bool(shorter) and f" {shorter} " in f" {longer} "

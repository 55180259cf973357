"""A name that is in neither the named sentences, nor their surroundings, nor the question."""

from collections.abc import Iterator
from itertools import zip_longest

from ..support.grounds import Grounds
from ..support.statement import Item, Statement
from ..support.words import forms_of_address
from . import Veto


def _fault(grounds: Grounds) -> str | None:
    around = tuple(grounds.around())
    missing = [
        item
        for item in _names(grounds.claim)
        if not any(statement.holds(item) or _named(item, statement.items) for statement in around)
        and not grounds.given(item)
    ]
    if not missing:
        return None
    if not grounds.same_language:
        missing = [item for item in missing if item.written.lower() not in forms_of_address()]
        # names differ between languages: each unknown one may match one that is left over
        known = grounds.claim.items
        left = [
            item
            for statement in grounds.sentences
            for item in statement.items
            if item.is_name and not _named(item, known)
        ]
        if len(left) >= len(missing) or not any(
            item.written[0].isascii() and item.written[0].isalpha() for one in grounds.sentences for item in one.items
        ):
            return None
    return f"{missing[0].written} is not mentioned"


def _names(claim: Statement) -> Iterator[Item]:
    """The words of names; in German only the last of each, since nouns before it, or joined to it, look the same."""
    for item, following in zip_longest(claim.items, claim.items[1:]):
        goes_on = following is not None and following.is_name and following.clause == item.clause
        german = claim.language == "de" and (goes_on or f"-{item.written}" in claim.text)
        if item.is_name and not german and not claim.dates(item):
            yield item


def _named(item: Item, others: tuple[Item, ...]) -> bool:
    return any(item.same_as(other) or _alike(item.written.lower(), other.written.lower()) for other in others)


def _alike(one: str, other: str) -> bool:
    """The same name, possibly in the genitive."""
    plain = [name.removesuffix("'s").removesuffix("\u2019s").rstrip("s") for name in (one, other)]
    return plain[0] == plain[1]


VETO = Veto(name="names", fault=_fault, always=True)

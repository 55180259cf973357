"""Screening passages for text that is addressed to the model instead of the reader.

Patterns are data (`injection.yaml`), each with a text that it must catch and one that it must spare; a linear model
(`injection_classifier.py`) finds the wordings that no pattern names. Both see overt instructions and nothing else: a
patient attacker, or a plain request, gets past them, so they promise a record of what was dropped or marked, not
safety.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files

import yaml

from ...text.normalise import undisguised
from ..passage import Found

SHORTEST_TEXT = 20
"""Characters; a shorter passage holds no evidence."""


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One sign of an injection, and what it means in words."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Pattern(Sign):
    """One kind of injection. `catches` and `spares` are its examples, which a test runs."""

    regex: re.Pattern[str]
    catches: str
    spares: str


ORDER = Sign(name="order", reason="it reads like an order to a language model")
"""What the linear model finds."""


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A passage that was not let through, and why, in words for the reader of a trace."""

    passage_id: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Screened:
    """The passages that remain, in their order, and those that do not."""

    kept: tuple[Found, ...]
    dropped: tuple[Dropped, ...]


def screen(found: Sequence[Found], *, drop: bool, shortest: int = SHORTEST_TEXT) -> Screened:
    """Look for injections in titles and texts.

    With `drop`, passages that hold one, or whose text has less than `shortest` characters, are left out.
    Without (evidence that a benchmark supplies) all are kept, and `suspect` names the patterns found.
    """
    kept: list[Found] = []
    dropped: list[Dropped] = []
    for item in found:
        suspect = injections(item.passage.searchable())
        reasons = [pattern.reason for pattern in suspect]
        if len(item.passage.text.strip()) < shortest:
            reasons.append(f"its text is shorter than {shortest} characters")
        if drop and reasons:
            dropped.append(Dropped(passage_id=item.passage.id, reason="; ".join(reasons)))
        else:
            kept.append(replace(item, suspect=tuple(pattern.name for pattern in suspect)) if suspect else item)
    return Screened(kept=tuple(kept), dropped=tuple(dropped))


@lru_cache(maxsize=4096)  # what one question finds, many find
def injections(text: str) -> tuple[Sign, ...]:
    """The patterns that occur in `text`, else what the model says of it; disguises of form are seen through."""
    form = undisguised(text)
    found = tuple(pattern for pattern in patterns() if pattern.regex.search(form))
    if found:
        return found
    from .injection_classifier import reads_like_an_order

    return (ORDER,) if reads_like_an_order(text) else ()


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, in the order of the file."""
    rows = yaml.safe_load(files(__package__).joinpath("injection.yaml").read_text("utf-8"))
    return tuple(
        Pattern(
            name=row["name"],
            regex=re.compile(row["regex"], re.MULTILINE | re.VERBOSE),
            reason=row["reason"],
            catches=row["catches"],
            spares=row["spares"],
        )
        for row in rows
    )

"""Screens passages for text that addresses the model instead of the reader.

Patterns are data (`injection.yaml`), each with a text that it must catch and one that it must spare; a linear model
(`injection_classifier.py`) finds wordings that no pattern covers. Both detect only overt instructions: a
patient attacker, or a plain request, gets past them. They therefore provide a record of what was dropped or marked, not
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

SHORT = "short"
"""The kind of a passage whose text is too short."""
SHORTEST_TEXT = 20
"""The minimum number of characters; a shorter passage contains no evidence."""


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One sign of an injection, and its meaning in words."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Pattern(Sign):
    """One kind of injection. `catches` and `spares` are its examples, which a test runs."""

    regex: re.Pattern[str]
    catches: str
    spares: str


ORDER = Sign(name="order", reason="it reads like an order to a language model")
"""The sign for what the linear model finds."""


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A passage, or only its section heading, that was removed, and the reason, for the reader of a trace.

    `kinds` names the signs of an injection, or `short`; it is empty for a passage that merely did not match.
    """

    passage_id: str
    reason: str
    doc_id: str = ""
    kinds: tuple[str, ...] = ()

    @property
    def is_order(self) -> bool:
        """Does it address the model, rather than being too short or irrelevant?"""
        return any(kind != SHORT for kind in self.kinds)


@dataclass(frozen=True, kw_only=True)
class Screened:
    """The remaining passages, in order, and what was removed."""

    kept: tuple[Found, ...]
    dropped: tuple[Dropped, ...]


def screen(found: Sequence[Found], *, drop: bool, shortest: int = SHORTEST_TEXT) -> Screened:
    """Look for injections in titles, section headings and texts.

    With `drop`, passages that contain one, or whose text has fewer than `shortest` characters, are left out; a passage
    with one in its section heading is kept without the heading, which neither the model nor the reader then sees.
    Without it (evidence that a benchmark supplies), all are kept, and `suspect` names the patterns found.
    """
    kept: list[Found] = []
    dropped: list[Dropped] = []
    for item in found:
        suspect = injections(item.passage.searchable())
        heading = injections(item.passage.section or "")
        signs = list(suspect)
        if len(item.passage.text.strip()) < shortest:
            signs.append(Sign(name=SHORT, reason=f"its text is shorter than {shortest} characters"))
        if drop and signs:
            dropped.append(_dropped(item, signs))
        elif drop and heading:
            dropped.append(_dropped(item, heading, "only its section heading, because "))
            kept.append(replace(item, passage=replace(item.passage, section=None)))
        else:
            names = tuple(dict.fromkeys(sign.name for sign in (*suspect, *heading)))
            kept.append(replace(item, suspect=names) if names else item)
    return Screened(kept=tuple(kept), dropped=tuple(dropped))


def _dropped(found: Found, signs: Sequence[Sign], before: str = "") -> Dropped:
    return Dropped(
        passage_id=found.passage.id,
        reason=before + "; ".join(sign.reason for sign in signs),
        doc_id=found.passage.doc_id,
        kinds=tuple(dict.fromkeys(sign.name for sign in signs)),
    )


@lru_cache(maxsize=4096)  # many questions find the same passages
def injections(text: str) -> tuple[Sign, ...]:
    """The patterns that occur in `text`, else the model's verdict on it; disguised text is also checked."""
    form = undisguised(text)
    found = {one.reason: one for one in reversed(patterns()) if one.regex.search(form)}
    if found:
        return tuple(reversed(found.values()))
    from .injection_classifier import reads_like_an_order

    return (ORDER,) if reads_like_an_order(text) else ()


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, in file order."""
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

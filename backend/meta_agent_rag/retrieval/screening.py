"""Screens passages for overt orders to a language model, such as "ignore all previous instructions".

Nothing depends on this list: evidence is marked as data in every prompt, and no answer of a model can act. It removes
the plainest attacks, and reports whatever it removes. Whoever words an attack like ordinary text passes it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..text.normalise import undisguised
from .passage import Found, Passage

SHORT = "short"
"""The kind of a passage whose text is too short."""
SHORTEST_TEXT = 20
"""The minimum number of characters; a shorter passage contains no evidence."""

_INSTRUCTIONS = r"(?:instructions?|prompts?|directives?|guidelines|programming|training)"
_NOT_DENIED = r"(?:(?<!not )(?<!n't )(?<!n\u2019t )(?<!never )|(?<=why not ))\b"
_PATTERNS = {
    "override": (
        "it tells the model to ignore its instructions",
        rf"{_NOT_DENIED}(?:ignore|disregard|forget|override|bypass)\b[^.\n]{{0,40}}\b(?:previous|prior|above|earlier"
        rf"|preceding|initial|system|your)\b[^.\n]{{0,20}}\n?[^.\n]{{0,20}}\b{_INSTRUCTIONS}\b"
        rf"|{_NOT_DENIED}(?:ignore|disregard|forget)\s+all\s+instructions\b"
        rf"|{_NOT_DENIED}(?:ignore|disregard|forget)\s+(?:everything|anything|all)\s+(?:(?:that\s+)?(?:is|was|were|you\s+were"
        r"|you\s+have\s+been)\s+)?(?:written|said|told|given|instructed)?\s*(?:above|before|so\s+far|until\s+now)\b"
        r"(?=[^\S\n]*\n|\s*(?:$|[^\w\s]|and\b|then\b|in\b))",
    ),
    "role_reassignment": (
        "it gives the model another role",
        r"\byou\s+are\s+now\s+(?:in\s+\w+\s+mode|dan|an?\s+(?:\w+\s+)?(?:ai|assistant|chatbot|bot))\b"
        r"|\bfrom\s+now\s+on,?\s+you\s+(?:only|must|are\s+(?:dan|an?\s+(?:\w+\s+)?(?:ai|assistant|chatbot|bot)))\b",
    ),
    "prompt_exfiltration": (
        "it asks the model for its instructions",
        r"\b(?:reveal|print|repeat|output|show|leak|recite)\s+(?:me\s+)?(?:the|your)\s+(?:\w+\s+)?(?:system|hidden|initial)"
        rf"\s+{_INSTRUCTIONS}\b",
    ),
    "turn_marker": (
        "it imitates the marks between turns of a conversation",
        r"<\|\s?(?:im_start|im_end|system|user|assistant|eot_id|start_header_id|end_header_id)\s?\|>"
        r"|\[/?inst\]|<</?sys>>|</?(?:start|end)_of_turn>",
    ),
    "secrecy": (
        "it asks the model to hide something from the user",
        r"\b(?:do\s+not|don't|never)\s+(?:tell|inform|alert|notify)\s+the\s+user\s+(?:about|that|of)\s+(?:this|these)\b",
    ),
    "data_exfiltration": (
        "it asks for data to be sent to an address",
        r"!\[[^\]\n]{0,80}\]\(\s{0,3}https?://[^\s)]{1,200}(?:\{|%7b|=(?:secret|data|prompt|history|conversation)\b)",
    ),
}
_COMPILED = {name: (reason, re.compile(pattern)) for name, (reason, pattern) in _PATTERNS.items()}


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
        """Whether it addresses the model, rather than being too short or irrelevant."""
        return any(kind != SHORT for kind in self.kinds)


@dataclass(frozen=True, kw_only=True)
class Screened:
    """The remaining passages, in order, and what was removed."""

    kept: tuple[Found, ...]
    dropped: tuple[Dropped, ...]


def screen(found: Sequence[Found], *, drop: bool, shortest: int = SHORTEST_TEXT) -> Screened:
    """Look for orders to a model in titles, section headings and texts.

    With `drop`, passages that contain one, or whose text has fewer than `shortest` characters, are left out; a passage
    with one in its section heading is kept without the heading. Without it, all are kept, and `suspect` names what was
    found.
    """
    kept: list[Found] = []
    dropped: list[Dropped] = []
    for item in found:
        signs = dict(injections(item.passage.searchable()))
        heading = dict(injections(item.passage.section or ""))
        if not drop:
            names = tuple(signs | heading)
            kept.append(replace(item, suspect=names) if names else item)
            continue
        text = item.passage.text.strip()
        if len(text) + sum(character > "\u2e7f" for character in text) < shortest:  # wide ones say more
            signs[SHORT] = f"its text is shorter than {shortest} characters"
        if signs:
            dropped.append(_dropped(item, signs))
        elif heading:
            dropped.append(_dropped(item, heading, "only its section heading, because "))
            kept.append(replace(item, passage=replace(item.passage, section=None)))
        else:
            kept.append(item)
    return Screened(kept=tuple(kept), dropped=tuple(dropped))


def _dropped(found: Found, signs: dict[str, str], before: str = "") -> Dropped:
    return Dropped(
        passage_id=found.passage.id,
        reason=before + "; ".join(signs.values()),
        doc_id=found.passage.doc_id,
        kinds=tuple(signs),
    )


@lru_cache(maxsize=4096)  # many questions find the same passages
def injections(text: str) -> tuple[tuple[str, str], ...]:
    """The name and the reason of each pattern that occurs in a text, however its characters are disguised."""
    form = undisguised(text)
    return tuple((name, reason) for name, (reason, pattern) in _COMPILED.items() if pattern.search(form))


def left_out(passages: Iterable[Passage]) -> str | None:
    """What answers will leave out of a document, as a clause for the report of its ingestion; `None` if nothing."""
    reasons: dict[str, int] = {}
    for passage in passages:
        for _, reason in injections(passage.searchable()):
            reasons[reason] = reasons.get(reason, 0) + 1
    if not reasons:
        return None
    counted = "; ".join(f"{number} because {reason}" for reason, number in reasons.items())
    return f"passages that answers leave out: {counted} (SCREENING=false uses them)"

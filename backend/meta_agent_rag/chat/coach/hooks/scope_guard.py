"""Pre-hook: rejects a message that is far from every topic of the documents, without a call."""

import re
from dataclasses import dataclass

from ....text.normalise import typed
from ...phrases import reply_phrase
from ..hook import IncomingMessage, Ruling
from ..words import beginning_of, ends_with, holds, last_question, length
from .deadlock_breaker import gives_up

SHORT = 30
"""The number of characters below which a message with a safe word belongs to the dialogue."""

_WORD = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, kw_only=True)
class ScopeGuard:
    """Compares a message with the topics by meaning; messages that belong to the dialogue pass without comparison."""

    name: str = "scope_guard"
    priority: int = 20

    async def before(self, incoming: IncomingMessage) -> Ruling:
        """See `PreHook`. The score is reported on a rejection."""
        if incoming.scope is None or incoming.emergency or _belongs_to_the_dialogue(incoming):
            return Ruling()
        asked = last_question(incoming.pending.answer) if incoming.pending is not None else ""
        nearest = await incoming.scope.score(incoming.message, asked=asked)
        if nearest is None:
            return Ruling()
        values = {"score": f"{nearest.score:.2f}", "topic": nearest.topic}
        outside = nearest.score < nearest.threshold
        return Ruling(
            refusal=reply_phrase("out_of_scope", threshold=f"{nearest.threshold:.2f}", **values) if outside else "",
            detail="{topic}: {score}".format(**values),
            score=nearest.score,
        )


def _belongs_to_the_dialogue(incoming: IncomingMessage) -> bool:
    """Whether a message is conversational, or from a learner who is still stuck after the hint."""
    reading = incoming.reading
    small_talk = reading is not None and (reading.intent == "small_talk" or reading.gives_up)
    return (
        small_talk
        or is_conversational(incoming.message)
        or (incoming.pending is not None and gives_up(incoming.message))
    )


def is_conversational(message: str) -> bool:
    """Whether a message is short, with a safe word or without any word whose meaning could be compared.

    >>> is_conversational("Yes, I think so"), is_conversational("1/2"), is_conversational("Best pizza in Rome")
    (True, True, False)
    """
    text = typed(message)
    if length(message) >= SHORT:
        return False
    # a Japanese word is only certain at an end, for want of blanks
    stands = holds(text, "safe") if text.isascii() else beginning_of(text, "safe") > 0 or ends_with(text, "safe")
    return stands or not _WORD.search(text)


PRE_HOOK = ScopeGuard()

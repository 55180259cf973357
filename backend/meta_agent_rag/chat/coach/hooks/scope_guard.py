"""Pre-hook: rejects a message that is far from every topic of the documents, without a call."""

import re
from dataclasses import dataclass
from functools import partial

from ....text.normalise import typed
from ...answers import reply_phrase
from ..hook import IncomingMessage, Ruling, ScopeScore
from ..phrases import coach_words, is_word_at
from ..wording import last_question, length
from .deadlock_breaker import gives_up

SHORT = 30
"""The number of characters below which a message with a safe word belongs to the dialogue."""

_LEAST_IN_A_WORD = 3
_WORD = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, kw_only=True)
class ScopeGuard:
    """Compares a message with the topics by meaning; messages that belong to the dialogue pass without comparison."""

    name: str = "scope_guard"
    priority: int = 20

    async def before(self, incoming: IncomingMessage) -> Ruling:
        """See `PreHook`. The score is reported on a rejection."""
        if incoming.scope is None or incoming.in_emergency or _belongs_to_the_dialogue(incoming):
            return Ruling()
        asked = last_question(incoming.pending.answer) if incoming.pending is not None else ""
        score = partial(incoming.scope.score, incoming.message, asked=asked)
        nearest = await score(incoming.topic)
        if nearest is None:
            return Ruling()
        if nearest.score >= nearest.threshold:
            return Ruling(detail=_detail(nearest), score=nearest.score, topic=nearest.topic)
        anywhere = await score() if incoming.topic else None
        covered = anywhere is not None and anywhere.score >= anywhere.threshold
        found = nearest if anywhere is None else anywhere
        refusal = reply_phrase(
            "out_of_topic" if covered else "out_of_scope",
            score=f"{found.score:.2f}",
            threshold=f"{found.threshold:.2f}",
            topic=found.topic,
            **({"chosen": incoming.topic} if covered else {}),
        )
        return Ruling(refusal=refusal, detail=_detail(found), score=found.score, topic=found.topic)


def _detail(score: ScopeScore) -> str:
    return f"{score.topic}: {score.score:.2f}"


def _belongs_to_the_dialogue(incoming: IncomingMessage) -> bool:
    """Is a message conversational, or from a learner who is still stuck after the hint?"""
    return is_conversational(incoming.message) or (incoming.pending is not None and gives_up(incoming.message))


def is_conversational(message: str) -> bool:
    """Is a message short, with a safe word or without any word whose meaning could be compared?

    >>> is_conversational("Yes, I think so"), is_conversational("1/2"), is_conversational("Best pizza in Rome")
    (True, True, False)
    """
    if length(message) >= SHORT:
        return False
    text = typed(message)
    return not _WORD.search(text) or any(_stands_in(text, word) for word in coach_words().safe)


def _stands_in(text: str, word: str) -> bool:
    """As whole words; short words of scripts without blanks match only at the beginning or end of a run."""
    place = text.find(word)
    while place >= 0:
        end = place + len(word)
        at_an_edge = place == 0 or text[place - 1] == " " or end == len(text) or text[end] == " "
        if is_word_at(text, place, end) and (word.isascii() or at_an_edge or len(word) >= _LEAST_IN_A_WORD):
            return True
        place = text.find(word, place + 1)
    return False


PRE_HOOK = ScopeGuard()

"""Pre-hook: if the learner is stuck on the coach's question, the coach may give the core hint once."""

import re
from dataclasses import dataclass

from ....text.normalise import typed
from ...history import HINT
from ..hook import IncomingMessage, Ruling
from ..phrases import beginning_of, coach_words, consists_of, ending_of, holds, reason, without_adverbs
from ..wording import ends_with_question

_LONGEST = 200
"""The most characters of a plain text that may be a surrender."""

_LONGEST_TAIL = 12
_LONGEST_SURRENDER = 80
"""The most characters of a plain text that is judged by meaning, or by one decisive phrase."""
_DIGIT = re.compile(r"\d")
_QUESTION = re.compile(r"[?\uff1f]")
_MEANING = re.compile(r"[^\W_]")
_CLAUSE_END = re.compile(r"[,.;:!\u2026\u2014\n\u3002\uff01]+")
_SIGN = re.compile(r"[+<>=\u00b1\u00d7\u00f7\u2260\u2264\u2265%/^]|[-\u2212](?=\s?\d)")
"""Signs that distinguish two answers with the same words."""


@dataclass(frozen=True, kw_only=True)
class DeadlockBreaker:
    """Declares an emergency if the coach has just asked and the learner gives up, says nothing, or repeats the answer.

    Messages that no word classifies are judged by meaning. After a hint, the coach returns to asking before it gives
    another one.
    """

    name: str = "deadlock_breaker"
    priority: int = 10

    async def before(self, incoming: IncomingMessage) -> Ruling:
        """See `PreHook`."""
        pending = incoming.pending
        if pending is None or pending.mode == HINT or not ends_with_question(pending.answer):
            return Ruling()
        if says_nothing(incoming.message):
            return _emergency("says_nothing")
        if gives_up(incoming.message):
            return _emergency("gives_up")
        if repeats(incoming.message, pending.question):
            return _emergency("repeats")
        return _emergency("gives_up") if await _means_to_give_up(incoming) else Ruling()


def says_nothing(message: str) -> bool:
    """Does a message consist of punctuation or mumbling alone?

    >>> says_nothing("...???"), says_nothing("42")
    (True, False)
    """
    if not _MEANING.search(message):
        return True
    mumbles = coach_words().mumbles
    return consists_of(typed(message)[:_LONGEST], mumbles, frozenset())


def gives_up(message: str) -> bool:
    """Does a message say that its writer has no answer, without anything that could be one?

    >>> gives_up("Sorry, I have no idea!"), gives_up("I passed the exam"), gives_up("The answer is 42")
    (True, False, False)
    """
    text, known = typed(message), coach_words()
    if not text or len(text) > _LONGEST:
        return False
    text = without_adverbs(text)
    if consists_of(text, known.surrender, known.fillers):
        return True
    if consists_of(text, known.surrender | known.bare, known.polite):
        return True
    if _QUESTION.search(message) or holds(text, known.attempts):
        return False
    if len(text) <= _LONGEST_SURRENDER and not _DIGIT.search(text) and holds(text, known.decisive):
        return True
    return _gives_up_on_something(message)


async def _means_to_give_up(incoming: IncomingMessage) -> bool:
    """Is a short message without an attempt closer to giving up than to going on, and not about the subject?"""
    message, known = incoming.message, coach_words()
    text = typed(message)
    if incoming.meanings is None or len(text) > _LONGEST_SURRENDER or _DIGIT.search(text):
        return False
    if consists_of(text, known.affirmations, known.fillers) or holds(text, known.attempts):
        return False
    if not await incoming.meanings.any_means([message], "gives_up"):
        return False
    nearest = None if incoming.scope is None else await incoming.scope.score(message, incoming.topic)
    return nearest is None or nearest.score < nearest.threshold


def _gives_up_on_something(message: str) -> bool:
    """Does a clause say what its writer gives up on, without another clause that adds anything?"""
    known = coach_words()
    clauses = [text for clause in _CLAUSE_END.split(message) if (text := without_adverbs(typed(clause)))]
    others = [clause for clause in clauses if not _says_on_what(clause)]
    says_no_more = known.surrender | known.bare | known.fillers
    return len(others) < len(clauses) and all(consists_of(clause, says_no_more, frozenset()) for clause in others)


def _says_on_what(text: str) -> bool:
    """`I have no idea what it does`: a strong opening followed by what it is about, or a Japanese ending."""
    known = coach_words()
    if ending_of(text, known.endings):
        return True
    while filler := beginning_of(text, known.fillers - known.openings):
        if beginning_of(text, known.openings):
            break
        text = text[filler:].strip()
    opening = beginning_of(text, known.openings)
    tail = text[opening:].strip()
    return bool(opening and beginning_of(tail, known.tails)) and len(tail.split()) <= _LONGEST_TAIL


def repeats(message: str, before: str) -> bool:
    """Does a message repeat the words of the previous one? A bare yes or no may be repeated.

    >>> repeats("The tilt!", "the tilt"), repeats("Yes.", "Yes"), repeats("-3", "3")
    (True, False, False)
    """
    known = coach_words()
    said, earlier = typed(message), typed(before)
    while said and (size := beginning_of(said, known.repeats)):
        said = said[size:].strip()
    if not said or consists_of(said, known.affirmations, known.fillers):
        return False
    return said == earlier and _SIGN.findall(message) == _SIGN.findall(before)


def _emergency(why: str) -> Ruling:
    return Ruling(emergency=reason(why), detail=why)


PRE_HOOK = DeadlockBreaker()

"""Before: the learner is stuck on the coach's question, so the coach may give the core hint, once."""

import re
from dataclasses import dataclass

from ..hook import HINT, Heard, Ruling
from ..phrases import beginning_of, coach_words, consists_of, ending_of, holds, plain, reason
from ..wording import ends_with_question

_LONGEST = 200
"""Characters of a plain text; a longer message is no surrender."""

_LONGEST_TAIL = 12
_QUESTION = re.compile(r"[?\uff1f]")
_MEANING = re.compile(r"[^\W_]")


@dataclass(frozen=True, kw_only=True)
class DeadlockBreaker:
    """Rules an emergency where the coach has just asked and the learner gives up, says nothing, or repeats itself.

    After a hint it rests: the coach returns to asking before it gives another.
    """

    name: str = "deadlock_breaker"
    priority: int = 10

    async def before(self, heard: Heard) -> Ruling:
        """See `PreHook`."""
        pending = heard.pending
        if pending is None or pending.mode == HINT or not ends_with_question(pending.answer):
            return Ruling()
        if says_nothing(heard.message):
            return _emergency("says_nothing")
        if gives_up(heard.message):
            return _emergency("gives_up")
        return _emergency("repeats") if repeats(heard.message, pending.question) else Ruling()


def says_nothing(message: str) -> bool:
    """Is there no letter and no digit in a message, or mumbling alone?

    >>> says_nothing("...???"), says_nothing("42")
    (True, False)
    """
    if not _MEANING.search(message):
        return True
    mumbles = coach_words().mumbles
    return consists_of(plain(message)[:_LONGEST], mumbles, frozenset())


def gives_up(message: str) -> bool:
    """Does a message say that its writer has no answer, and nothing that could be one?

    >>> gives_up("Sorry, I have no idea!"), gives_up("I passed the exam"), gives_up("The answer is 42")
    (True, False, False)
    """
    text, known = plain(message), coach_words()
    if not text or len(text) > _LONGEST:
        return False
    text = " ".join(word for word in text.split() if word not in known.adverbs)
    if consists_of(text, known.surrender, known.fillers):
        return True
    if consists_of(text, known.surrender | known.bare, known.polite):
        return True
    if _QUESTION.search(message) or holds(text, known.attempts):
        return False
    return bool(ending_of(text, known.endings)) or _gives_up_on_something(text)


def _gives_up_on_something(text: str) -> bool:
    """`I have no idea what it does`: a strong opening, and a tail that names what it is about."""
    known = coach_words()
    while filler := beginning_of(text, known.fillers - known.openings):
        if beginning_of(text, known.openings):
            break
        text = text[filler:].strip()
    opening = beginning_of(text, known.openings)
    tail = text[opening:].strip()
    return bool(opening and beginning_of(tail, known.tails)) and len(tail.split()) <= _LONGEST_TAIL


def repeats(message: str, before: str) -> bool:
    """Are the words of a message those of the one before? A bare yes or no may come twice.

    >>> repeats("The tilt!", "the tilt"), repeats("Yes.", "Yes")
    (True, False)
    """
    known = coach_words()
    said, earlier = plain(message), plain(before)
    while said and (size := beginning_of(said, known.repeats)):
        said = said[size:].strip()
    if not said or consists_of(said, known.affirmations, known.fillers):
        return False
    return said == earlier


def _emergency(why: str) -> Ruling:
    return Ruling(emergency=reason(why), detail=why)


PRE_HOOK = DeadlockBreaker()

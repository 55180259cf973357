"""Pre-hook: if the learner is stuck on the coach's question, the coach may give the core hint once."""

import re
from dataclasses import dataclass

from ....text.normalise import typed
from ...history import HINT
from ..hook import IncomingMessage, Ruling
from ..words import beginning_of, consists_of, ends_with, ends_with_question, reason, says_something

_LONGEST = 200
"""The most characters of a message that may give up."""
_CLAUSE_END = re.compile(r"[,.;:!?\u2026\u2014\n\u3001\u3002\uff01\uff1f]+")
_SIGN = re.compile(r"[+<>=\u00b1\u00d7\u00f7\u2260\u2264\u2265%/^]|[-\u2212](?=\s?\d)")
"""Signs that distinguish two answers with the same words."""


@dataclass(frozen=True, kw_only=True)
class DeadlockBreaker:
    """Declares an emergency if the coach has just asked and the learner gives up, says nothing, or repeats the answer.

    In languages without phrases, the reading of the message decides. After a hint, the coach returns to asking before
    it gives another one.
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
        if gives_up(incoming.message) or (incoming.reading is not None and incoming.reading.gives_up):
            return _emergency("gives_up")
        return _emergency("repeats") if repeats(incoming.message, pending.question) else Ruling()


def says_nothing(message: str) -> bool:
    """Whether a message consists of punctuation or mumbling alone.

    >>> says_nothing("...???"), says_nothing("42")
    (True, False)
    """
    return not says_something(message) or consists_of(typed(message)[:_LONGEST], "mumbles")


def gives_up(message: str) -> bool:
    """Whether a message says that its writer has no answer, without anything that could be one.

    >>> gives_up("Sorry, I have no idea!"), gives_up("I passed the exam"), gives_up("The answer is 42")
    (True, False, False)
    """
    clauses = [text for clause in _CLAUSE_END.split(message[: _LONGEST + 1]) if (text := typed(clause))]
    if len(message) > _LONGEST or not any(_surrenders(clause) for clause in clauses):
        return False
    return all(_surrenders(one) or consists_of(one, "fillers") for one in clauses) and not _declines(clauses)


def _surrenders(clause: str) -> bool:
    if consists_of(clause, "gives_up", "gives_up_alone", beside="fillers"):
        return True
    if not clause.isascii():
        return ends_with(clause, "gives_up")
    while (size := beginning_of(clause, "fillers")) and not beginning_of(clause, "gives_up"):
        clause = clause[size:].strip()
    opening = beginning_of(clause, "gives_up")
    return opening > 0 and beginning_of(clause[opening:].strip(), "tails") > 0


def _declines(clauses: list[str]) -> bool:
    """Whether help is refused: "No hint please"."""
    return bool(re.match(r"no (more )?(hint|help)\b", clauses[0]))


def repeats(message: str, before: str) -> bool:
    """Whether a message repeats the words of the previous one. A bare yes or no may be repeated.

    >>> repeats("The tilt!", "the tilt"), repeats("Yes.", "Yes"), repeats("-3", "3")
    (True, False, False)
    """
    said, earlier = typed(message), typed(before)
    while said and (size := beginning_of(said, "repeats")):
        said = said[size:].strip()
    if not said or consists_of(said, "affirmations", beside="fillers"):
        return False
    return said == earlier and _SIGN.findall(message) == _SIGN.findall(before)


def _emergency(why: str) -> Ruling:
    return Ruling(emergency=reason(why), detail=why)


PRE_HOOK = DeadlockBreaker()

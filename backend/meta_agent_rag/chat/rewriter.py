"""Makes a follow-up question self-contained by a call of the stage `rewrite_query`, which rules then validate."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ModelError
from ..llm.client import ModelSession
from ..llm.messages import Message
from ..prompts import phrase, prompt
from ..prompts.fencing import fenced
from ..text.names import words
from ..text.normalise import typed
from ..text.words import stop_words
from .history import History, transcript
from .self_contained import pointing_words, stands_alone
from .words import conversation_words, without_courtesy

LONGEST_ADDITION = 15
"""How many words longer than the question a rewrite may be: a name or two, and what was left out."""

MOST_NEW_WORDS = 2
"""The most content words of a rewrite that are in neither question nor conversation ("born" for "birthplace")."""

_QUOTES = "\"'`\u201c\u201d\u2018\u2019 \t"
_SHORTEST_STEM = 3
_ENDING = 3


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """The query derived from a question.

    `how` says how it was obtained: `rewritten`; `restated` if the last question is asked again for its answer in
    another form; or, if it is the question itself, `nothing_before` and `stands_alone` (no call was made), the rule
    that the rewrite broke (a name in `RULES`), or `failed` with the `reason`.
    """

    query: str
    how: str
    reason: str = ""

    @property
    def refers_back(self) -> bool:
        """Can the question be understood only with the conversation?"""
        return self.how not in {"nothing_before", "stands_alone"}


async def rewritten(question: str, history: History, model: ModelSession) -> Rewritten:
    """The question in a form that can be searched for without the conversation.

    Makes no call if there is no conversation or the question stands alone by rule, so that an old topic cannot
    leak into a new one. Falls back to the question if the rewrite breaks one of `RULES`, or if the
    call fails in a way that may not affect other calls. Raises a `ModelError` that stops a run, or a `BudgetError`.
    """
    if history.is_empty:
        return Rewritten(query=question, how="nothing_before")
    if history.exchanges and asks_to_restate(question):
        return Rewritten(query=history.exchanges[-1].standalone, how="restated")
    if stands_alone(question):
        return Rewritten(query=question, how="stands_alone")
    try:
        reply = await model.ainvoke("rewrite_query", _messages(question, history, model))
    except ModelError as error:
        if error.stops_run:
            raise
        return Rewritten(query=question, how="failed", reason=str(error))
    broken = broken_rule(reply, question, history)
    return Rewritten(query=question, how=broken) if broken else Rewritten(query=as_query(reply), how="rewritten")


def asks_to_restate(message: str) -> bool:
    """Does a message only ask for the last answer in another form?

    >>> [asks_to_restate(one) for one in ("In German, please.", "Say that in simpler words", "And in 1912?")]
    [True, True, False]
    """
    said = words(message)
    forms = (" ".join(said), " ".join(said[without_courtesy(said)]), typed(message))  # `typed` keeps the marks of kana
    return any(conversation_words().restating.fullmatch(form) for form in forms)


def as_query(reply: str) -> str:
    """The rewrite without quotes and without a label that the model put before it.

    >>> as_query('Standalone question: "Where was Mira Holt born?"')
    'Where was Mira Holt born?'
    """
    text = reply.strip().strip(_QUOTES)
    label, colon, rest = text.partition(":")
    if colon and label.strip(" *#").casefold() in conversation_words().labels:
        text = rest
    return text.strip(f"{_QUOTES}*\n")


def broken_rule(reply: str, question: str, history: History) -> str:
    """The first of `RULES` that a rewrite breaks, else an empty string."""
    query = as_query(reply)
    return next((name for name, breaks in RULES.items() if breaks(query, question, history)), "")


def _is_empty(query: str, question: str, history: History) -> bool:
    return not words(query)


def _has_several_lines(query: str, question: str, history: History) -> bool:
    return len([line for line in query.splitlines() if line.strip()]) > 1


def _runs_away(query: str, question: str, history: History) -> bool:
    """More than `LONGEST_ADDITION` words longer, or longer than the words of the conversation can explain."""
    addition = min(LONGEST_ADDITION, len(words(history.text)))
    return len(words(query)) > len(words(question)) + addition


def _answers(query: str, question: str, history: History) -> bool:
    """A statement instead of a question: no question mark, no question word in front, and a full stop.

    If the user wrote a question mark or a question word, one of the two must be kept.
    """
    if _asks(query):
        return False
    return _asks(question) or query.endswith((".", "!"))


def _loses_words(query: str, question: str, history: History) -> bool:
    """A content word of the question is missing, so the rewrite is about something else."""
    said = words(question)
    needed = set(_content(" ".join(said[without_courtesy(said)]))) - pointing_words()
    held = set(words(query))
    return any(not any(_akin(word, other) for other in held) for word in needed)


def _invents(query: str, question: str, history: History) -> bool:
    """A name or number that nobody mentioned, or more than `MOST_NEW_WORDS` new words."""
    held = set(words(f"{question}\n{history.text}"))
    new = [word for word in _content(query) if not any(_akin(word, other) for other in held)]
    asking = conversation_words().asking
    names = {word for match in re.finditer(r"\w+", query) if _is_named(match[0]) for word in words(match[0])}
    return len(new) > MOST_NEW_WORDS or any(word in names and word not in asking for word in new)


RULES: dict[str, Callable[[str, str, History], bool]] = {
    "empty": _is_empty,
    "several_lines": _has_several_lines,
    "too_long": _runs_away,
    "an_answer": _answers,
    "lost_words": _loses_words,
    "invented_words": _invents,
}
"""Faults of a rewrite; each maps (rewrite, question, history) to whether it applies. Checked in this order."""


def _messages(question: str, history: History, model: ModelSession) -> list[Message]:
    settings = model.owner.settings
    task = prompt("rewriter", settings.prompts_dir).text(
        summary=fenced(history.summary) or phrase("nothing_yet"),
        conversation=transcript(history.exchanges, settings.memory_tokens) or phrase("nothing_yet"),
        question=fenced(question),
    )
    return [Message(role="user", content=task)]


def _asks(text: str) -> bool:
    said = words(text)
    return text.rstrip().endswith("?") or bool(said and said[0] in conversation_words().asking)


def _content(text: str) -> list[str]:
    return [word for word in dict.fromkeys(words(text)) if word not in stop_words()]


def _is_named(word: str) -> bool:
    return word[0].isupper() or any(letter.isdigit() for letter in word)


def _akin(word: str, other: str) -> bool:
    """Equal except for an ending: "designed" and "designer", "city" and "cities"."""
    if word == other:
        return True
    if word.isdigit() or other.isdigit():
        return False
    stem = max(_SHORTEST_STEM, max(len(word), len(other)) - _ENDING)
    return word[:stem] == other[:stem]

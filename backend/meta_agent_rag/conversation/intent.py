"""What a message wants, determined by rules over words, without a model.

The rules are conservative: anything not clearly something else is a question for the documents, because
leaving a question unanswered costs more than a search that finds nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..text.names import words
from .words import Patterns, Pleasantry, Words, conversation_words, phrase_at, without_courtesy

Intent: TypeAlias = Literal["question", "pleasantry", "off_topic", "conversation"]

_LONGEST = 40
"""The most words; a longer message is a question for the documents."""

_LONGEST_TEXT = 2000

_SENTENCE_BREAK = re.compile(r"[.!?;]+\s+")


@dataclass(frozen=True, kw_only=True)
class Interpretation:
    """What a message wants; `kind` identifies the phrase that answers it, and is empty for a question.

    `reply` is the phrase itself for small talk in a language other than English.
    """

    intent: Intent
    kind: str = ""
    reply: str = ""


QUESTION = Interpretation(intent="question")


def read_intent(message: str) -> Interpretation:
    """The intent of a message; never fails.

    >>> read_intent("Thanks a lot!").intent, read_intent("Thanks, and who built it?").intent
    ('pleasantry', 'question')
    >>> read_intent("What have we discussed?").kind, read_intent("Write me a poem about the sea.").intent
    ('discussed', 'off_topic')
    """
    said = words(message) if len(message) <= _LONGEST_TEXT else []
    if not said or len(said) > _LONGEST:
        return QUESTION
    known = conversation_words()
    if found := _pleasantry(said, message, known):
        return Interpretation(intent="pleasantry", kind=found.kind, reply=found.reply)
    for text in dict.fromkeys((" ".join(said), " ".join(said[without_courtesy(said)]))):
        if kind := _kind(text, known.about_conversation):
            return Interpretation(intent="conversation", kind=kind)
        if kind := _off_topic(text, message, known):
            return Interpretation(intent="off_topic", kind=kind)
    return QUESTION


def _pleasantry(said: Sequence[str], message: str, known: Words) -> Pleasantry | None:
    """The pleasantry of a message that consists only of pleasantries and fillers; of several, the first by kind."""
    found: list[Pleasantry] = []
    place = 0
    while place < len(said):
        sizes = [(phrase_at(said, place, each.phrases), each) for each in known.pleasantries]
        size, longest = max(sizes, key=lambda pair: pair[0])
        filler = phrase_at(said, place, known.fillers)
        if size:
            found.append(longest)
        elif not filler:
            return None
        place += size or filler
    begins_with_one = any(phrase_at(said, 0, each.phrases) for each in known.pleasantries)
    asked = message.rstrip().endswith(("?", "\uff1f")) or (said[0] in known.asking and not begins_with_one)
    if asked and not all(each.may_ask for each in found):
        return None
    return next((each for each in known.pleasantries if each in found), None)


def _kind(text: str, patterns: Patterns) -> str:
    return next((kind for kind, pattern in patterns if pattern.fullmatch(text)), "")


def _off_topic(text: str, message: str, known: Words) -> str:
    kind = _kind(text, known.off_topic)
    # "write me a poem about the tower and say who built it" also asks the documents, and so may a second sentence
    asks_too = known.question_words & set(text.split()[2:]) or _sentences_that_want_something(message, known) > 1
    return "" if asks_too else kind


def _sentences_that_want_something(message: str, known: Words) -> int:
    pieces = [(piece, words(piece)) for piece in _SENTENCE_BREAK.split(message)]
    return len([said for piece, said in pieces if said and not _pleasantry(said, piece, known)])

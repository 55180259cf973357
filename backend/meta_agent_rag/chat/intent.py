"""What a message wants, determined by rules over words, without a model.

The rules are conservative: anything not clearly something else is a question for the documents, because
leaving a question unanswered costs more than a search that finds nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import regex

from ..text.names import words
from .documents import read_document_request
from .words import Patterns, Pleasantry, Words, conversation_words, phrase_at, without_courtesy

Intent: TypeAlias = Literal["question", "pleasantry", "off_topic", "conversation", "documents"]

_LONGEST = 40
"""The most words; a longer message is a question for the documents."""

_LONGEST_TEXT = 2000

_EMOJI = regex.compile(r"[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Regional_Indicator}\u200d\ufe0f\s!.]+")
_SMILEY = re.compile(r"\s*(?:[:;=]-?[)DPp]+|\^_?\^|<3)\s*")
_SENTENCE_BREAK = re.compile(r"[.!?;]+\s+")


@dataclass(frozen=True, kw_only=True)
class Interpretation:
    """What a message wants; `kind` identifies the phrase that answers it, and is empty for a question.

    `reply` is the phrase itself for small talk in a language other than English, or what introduces a list of
    documents. `kinds` are those of all pleasantries in the message. For the intent `documents`, `kind` is `list` or
    `overview`, and `every` says that an overview is of all documents.
    """

    intent: Intent
    kind: str = ""
    reply: str = ""
    kinds: frozenset[str] = field(default=frozenset(), compare=False)
    every: bool = False


QUESTION = Interpretation(intent="question")


def read_intent(message: str) -> Interpretation:
    """The intent of a message; never fails.

    >>> read_intent("Thanks a lot!").intent, read_intent("Thanks, and who built it?").intent
    ('pleasantry', 'question')
    >>> read_intent("What have we discussed?").kind, read_intent("Write me a poem about the sea.").intent
    ('discussed', 'off_topic')
    """
    known = conversation_words()
    if len(message) <= _LONGEST_TEXT and (kind := _emoji(message, known)):
        return Interpretation(intent="pleasantry", kind=kind, kinds=frozenset({kind}))
    said = words(message) if len(message) <= _LONGEST_TEXT else []
    if not said or len(said) > _LONGEST:
        return QUESTION
    if found := _pleasantries(said, message, known):
        kinds = frozenset(each.kind for each in found)
        return Interpretation(intent="pleasantry", kind=found[0].kind, reply=found[0].reply, kinds=kinds)
    if wanted := read_document_request(message):
        return Interpretation(intent="documents", kind=wanted.kind, reply=wanted.reply, every=wanted.every)
    return _other_request(said, message, known)


def _other_request(said: Sequence[str], message: str, known: Words) -> Interpretation:
    for text in dict.fromkeys((" ".join(said), " ".join(said[without_courtesy(said)]))):
        if kind := _kind(text, known.about_conversation):
            return Interpretation(intent="conversation", kind=kind)
        if kind := _off_topic(text, message, known):
            return Interpretation(intent="off_topic", kind=kind)
    return QUESTION


def _emoji(message: str, known: Words) -> str:
    """The kind of a message of emoji alone; empty for any other."""
    if _SMILEY.fullmatch(message):
        return "acknowledgement"
    if not message.strip(" \n!.") or not _EMOJI.fullmatch(message):
        return ""
    return next((kind for kind, signs in known.emoji for sign in message if sign in signs), "emoji")


def _pleasantries(said: Sequence[str], message: str, known: Words) -> list[Pleasantry]:
    """The pleasantries of a message that consists only of them and fillers, ordered by kind; else an empty list."""
    found: list[Pleasantry] = []
    place = 0
    while place < len(said):
        sizes = [(phrase_at(said, place, each.phrases), each) for each in known.pleasantries]
        size, longest = max(sizes, key=lambda pair: pair[0])
        filler = phrase_at(said, place, known.fillers)
        if size:
            found.append(longest)
        elif not filler:
            return []
        place += size or filler
    begins_with_one = any(phrase_at(said, 0, each.phrases) for each in known.pleasantries)
    asked = message.rstrip().endswith(("?", "\uff1f")) or (said[0] in known.asking and not begins_with_one)
    if asked and not all(each.may_ask for each in found):
        return []
    return [each for each in known.pleasantries if each in found]


def _kind(text: str, patterns: Patterns) -> str:
    return next((kind for kind, pattern in patterns if pattern.fullmatch(text)), "")


def _off_topic(text: str, message: str, known: Words) -> str:
    kind = _kind(text, known.off_topic)
    # "write me a poem about the tower and say who built it" also asks the documents, and so may a second sentence
    asks_too = known.question_words & set(text.split()[2:]) or _sentences_that_want_something(message, known) > 1
    return "" if asks_too else kind


def _sentences_that_want_something(message: str, known: Words) -> int:
    pieces = [(piece, words(piece)) for piece in _SENTENCE_BREAK.split(message)]
    return len([said for piece, said in pieces if said and not _pleasantries(said, piece, known)])

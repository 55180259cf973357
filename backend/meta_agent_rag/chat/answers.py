"""Replies to messages that need no document: phrases from YAML, and the history."""

from collections.abc import Sequence
from string import Template

from ..discovery import named
from ..retrieval.corpus.catalogue import DocumentRecord
from ..text.names import words
from .documents import document_lines
from .history import Exchange, History
from .intent import Interpretation
from .own_files import folder_in_use, rows_of
from .words import conversation_words, phrase_at

_COURTESIES = frozenset({"farewell", "thanks", "how_are_you", "greeting"})


def reply_phrase(key: str, **values: object) -> str:
    """The phrase of that key, filled with values. Raises `UnknownNameError`."""
    text = named("phrase", key, rows_of("replies", folder_in_use()))
    return Template(text.strip()).safe_substitute({name: str(value) for name, value in values.items()})


def answer_about_documents(reading: Interpretation, documents: Sequence[DocumentRecord]) -> str:
    """A list of the documents; for an overview, also where to ask for one."""
    listed = [reading.reply, *document_lines(documents)] if documents else [reply_phrase("documents_none")]
    note = "overview_elsewhere" if reading.kind == "overview" else "documents_mention"
    return "\n\n".join(["\n".join(listed), reply_phrase(note)])


def answered_before_the_coach(reading: Interpretation, message: str, history: History) -> bool:
    """Is a message in coaching not for the coach: about the conversation or the list of documents, or small talk?

    "Help" and "who are you" are addressed to the coach. After the coach's question, a pleasantry that could be the
    learner's answer ("yes, thanks", "good") is one.
    """
    if reading.intent == "conversation":
        return reading.kind != "capabilities"
    if reading.intent == "documents":
        return reading.kind == "list"
    if reading.intent != "pleasantry":
        return False
    if not (history.exchanges and history.exchanges[-1].is_coaching):
        return True
    said, known = words(message), conversation_words()
    may_answer = any(phrase_at(said, place, known.answers) for place in range(len(said)))
    return bool(reading.kinds & _COURTESIES) and not may_answer


def answer_without_documents(reading: Interpretation, history: History) -> str:
    """The answer to a pleasantry, an off-topic request or a question about the conversation itself."""
    if reading.intent != "conversation":
        return reading.reply or reply_phrase(reading.kind)
    return _about(reading.kind, history)


def _about(kind: str, history: History) -> str:
    if kind == "discussed":
        return _discussed(history)
    if kind == "first_question":
        first = next((exchange for exchange in history.exchanges if exchange.turn == 1), None)
        return _quoted(kind, first, history)
    if kind in {"last_question", "last_answer"}:
        return _quoted(kind, history.exchanges[-1] if history.exchanges else None, history)
    return reply_phrase(kind, count=history.turns)


def _quoted(kind: str, exchange: Exchange | None, history: History) -> str:
    if exchange is None:
        return reply_phrase("not_word_for_word" if history.turns else "nothing_discussed")
    return reply_phrase(kind, question=exchange.question, answer=exchange.answer)


def _discussed(history: History) -> str:
    if history.is_empty:
        return reply_phrase("not_word_for_word" if history.turns else "nothing_discussed")
    parts = []
    if history.summary:
        parts.append(reply_phrase("discussed_before", summary=history.summary))
    if history.exchanges:
        questions = "\n".join(f"- {exchange.standalone}" for exchange in history.exchanges)
        parts.append(reply_phrase("discussed", questions=questions))
    if history.dropped:
        parts.append(reply_phrase("discussed_gone", count=history.dropped))
    return "\n\n".join(parts)

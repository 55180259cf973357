"""One message after the other: what it wants, what it refers to, who answers it, and what is remembered of it."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from ..errors import InputError
from ..llm.client import LanguageModel, ModelSession
from ..llm.ledger import LedgerRow
from ..settings import Settings
from .answers import answer_without_documents, said
from .history import History
from .intent import Reading, read_intent
from .memories import Limits, Memory, memory_named
from .memory import bounded, settled
from .rewriter import Rewritten, rewritten
from .summarizer import summarize

METHOD = "conversation"
"""How ledger rows name the calls of rewriter and summarizer."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What an answerer gives: the text that is shown, and the bare answer."""

    text: str
    short_answer: str = ""


class Answerer(Protocol):
    """Answers a question for the documents."""

    async def __call__(self, question: str, standalone: str) -> Reply:
        """The answer to `question`, the user's own words; `standalone` is what it is understood as.

        An error that it raises ends the turn, and nothing of the turn is remembered.
        """


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One message and what came of it.

    `rewritten` is `None` where no document was asked; `notes` say what a user must know of how the turn went;
    `calls` are the ledger rows of rewriter and summarizer, not the answerer's.
    """

    message: str
    reading: Reading
    reply: Reply
    rewritten: Rewritten | None = None
    notes: tuple[str, ...] = ()
    calls: tuple[LedgerRow, ...] = ()


@dataclass(kw_only=True)
class Conversation:
    """A conversation with its history; one turn at a time, a second one waits.

    `history` changes in single assignments alone: when a question was answered, and when a fold is done. A
    turn or a fold that fails or is cancelled before leaves it as it was.
    """

    model: LanguageModel
    answerer: Answerer
    memory: Memory
    limits: Limits
    history: History = field(default_factory=History)
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @classmethod
    def open(cls, model: LanguageModel, answerer: Answerer, history: History | None = None) -> "Conversation":
        """A conversation as the model's settings describe it, new or with an earlier history.

        Raises `UnknownNameError` or `SettingsError` for the memory's settings.
        """
        settings: Settings = model.settings
        memory, limits = memory_named(settings.memory), Limits.of(settings)
        return cls(model=model, answerer=answerer, memory=memory, limits=limits, history=history or History())

    async def say(self, message: str, *, deadline: float | None = None) -> Turn:
        """`reply` and then `settle`, in one: where it is cancelled during the latter, the turn is remembered."""
        turn = await self.reply(message, deadline=deadline)
        notes, calls = await self.settle()
        return Turn(
            message=turn.message,
            reading=turn.reading,
            reply=turn.reply,
            rewritten=turn.rewritten,
            notes=(*turn.notes, *notes),
            calls=(*turn.calls, *calls),
        )

    async def reply(self, message: str, *, deadline: float | None = None) -> Turn:
        """Answer one message; a question for the documents is remembered, nothing else is.

        `deadline` is a `time.monotonic` moment for the rewriter. Raises `InputError` for a message that is
        empty or no Unicode, what the answerer raises, and what `rewriter.rewritten` does.
        """
        text = _checked(message)
        async with self._busy:
            reading = read_intent(text)
            if reading.intent != "question":
                answer = Reply(text=answer_without_documents(reading, self.history))
                return Turn(message=text, reading=reading, reply=answer)
            session = self._session(deadline)
            query = await rewritten(text, self.history, session)
            answer = await self.answerer(text, query.query)
            longer = self.history.with_exchange(
                question=text, answer=answer.text.strip() or answer.short_answer, standalone=query.query
            )
            within = bounded(longer, self.limits)
            self.history = within.history
        notes = (said("not_rewritten", reason=query.reason),) if query.how == "failed" else ()
        return Turn(
            message=text,
            reading=reading,
            reply=answer,
            rewritten=query,
            notes=(*notes, *within.notes),
            calls=tuple(session.rows),
        )

    async def settle(self) -> tuple[tuple[str, ...], tuple[LedgerRow, ...]]:
        """Fold what the memory gives up: the notes and the calls; nothing to do on most turns.

        To be awaited after every `reply`, once the answer is shown. A model that fails leaves a note.
        """
        async with self._busy:
            session = self._session(None)
            done = await settled(
                self.history,
                memory=self.memory,
                limits=self.limits,
                summarize=lambda summary, exchanges: summarize(session, summary, exchanges),
            )
            self.history = done.history
        return done.notes, tuple(session.rows)

    def _session(self, deadline: float | None) -> ModelSession:
        return self.model.session(f"turn {self.history.turns + 1}", method=METHOD, deadline=deadline)


def _checked(message: str) -> str:
    text = message.strip()
    if not text:
        raise InputError("The message is empty; write a question.")
    if not text.isascii() and text.encode("utf-8", "ignore").decode("utf-8") != text:
        raise InputError("The message is not valid Unicode; check the terminal's encoding and write it anew.")
    return text

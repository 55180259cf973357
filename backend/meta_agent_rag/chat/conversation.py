"""Handles one message at a time: what it wants, what it refers to, who answers it, and what is remembered."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from ..errors import InputError
from ..llm.client import LanguageModel, ModelSession
from ..llm.ledger import LedgerRow
from ..retrieval.corpus.catalogue import DocumentRecord
from ..settings import Settings
from .answers import answer_about_documents, answer_without_documents, answered_before_the_coach, reply_phrase
from .coach.mode import PLAIN, Socratic
from .history import History, conversation
from .intent import Interpretation, read_intent
from .memories import Limits, Memory, memory_named
from .memory import CompactionResult, bounded, settled, summarize
from .own_files import files_of
from .rewriter import Rewritten, rewritten

METHOD = "conversation"
"""The names of the rewriter's and summarizer's calls in ledger rows."""


LONGEST_MESSAGE = 1000
"""The most characters of a message, as of a question to the service."""

ListDocuments: TypeAlias = Callable[[], Awaitable[Sequence[DocumentRecord]]]
"""Returns the documents of the corpus."""


@dataclass(frozen=True, kw_only=True)
class TurnReply:
    """An answerer's result: the text to show, and the bare answer.

    `kind` marks the exchange in the history if the mode does not; a reply that is not `remembered` is a notice.
    `topic` is the coach's: the chosen one, else the nearest one, else that of the conversation so far.
    """

    text: str
    short_answer: str = ""
    kind: str = ""
    remembered: bool = True
    topic: str = ""


class Answerer(Protocol):
    """Answers a question for the documents."""

    async def __call__(
        self, question: str, standalone: str, *, before: str = "", documents: frozenset[str] = frozenset()
    ) -> TurnReply:
        """The answer to `question`, the user's own words; `standalone` is its self-contained form.

        `before` is the conversation that the question refers to, empty if it stands alone. `documents` are the
        ids of those that it is to be answered from, all if empty.
        An error raised here ends the turn, and nothing of the turn is remembered.
        """


class Questioner(Protocol):
    """Answers a learner with a question."""

    async def __call__(
        self, message: str, *, history: History, socratic: Socratic, deadline: float | None = None
    ) -> TurnReply:
        """The reply to a message at the level of `socratic`; an error raised here ends the turn."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The result of one message.

    `rewritten` is `None` if no document was searched or the coach replied; `notes` tell the user how
    the turn went; `calls` are the ledger rows of rewriter and summarizer, not the answerer's.
    """

    reply: TurnReply
    rewritten: Rewritten | None = None
    notes: tuple[str, ...] = ()
    calls: tuple[LedgerRow, ...] = ()


@dataclass(kw_only=True)
class Conversation:
    """A conversation with its history; turns run one at a time.

    `socratic` may be set between any two turns. In the mode `teacher` the `teacher` replaces the answerer,
    in the mode `coach` the `coach`; if that one is missing, the answerer answers. `list_documents` is for requests for
    the documents themselves; if it is missing, these are questions.

    `history` is only assigned as a whole: when a question was answered, and when a fold is done. A
    turn or a fold that fails or is cancelled before that leaves it unchanged.
    """

    model: LanguageModel
    answerer: Answerer
    memory: Memory
    limits: Limits
    history: History = field(default_factory=History)
    socratic: Socratic = PLAIN
    teacher: Answerer | None = None
    coach: Questioner | None = None
    list_documents: ListDocuments | None = None
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @classmethod
    def open(
        cls,
        model: LanguageModel,
        answerer: Answerer,
        history: History | None = None,
        *,
        socratic: Socratic = PLAIN,
        teacher: Answerer | None = None,
        coach: Questioner | None = None,
        list_documents: ListDocuments | None = None,
    ) -> "Conversation":
        """A conversation as the model's settings describe it, new or with an earlier history.

        Raises `UnknownNameError` or `SettingsError` for the memory's settings.
        """
        settings: Settings = model.settings
        memory, limits = memory_named(settings.memory), Limits.of(settings)
        return cls(
            model=model,
            answerer=answerer,
            memory=memory,
            limits=limits,
            history=history or History(),
            socratic=socratic,
            teacher=teacher,
            coach=coach,
            list_documents=list_documents,
        )

    async def say(self, message: str, *, deadline: float | None = None) -> Turn:
        """`reply` followed by `settle`; if it is cancelled during `settle`, the turn is still remembered."""
        turn = await self.reply(message, deadline=deadline)
        notes, calls = await self.settle()
        return replace(turn, notes=(*turn.notes, *notes), calls=(*turn.calls, *calls))

    async def reply(
        self,
        message: str,
        *,
        reading: Interpretation | None = None,
        deadline: float | None = None,
        documents: frozenset[str] = frozenset(),
    ) -> Turn:
        """Answer one message; only questions for the documents are remembered.

        `documents` limit the answer to these ids; the coach keeps to its topic instead. `reading` is what the message
        wants, if the caller knows it. `deadline` is a `time.monotonic` timestamp for the rewriter.
        Raises `InputError` for a message that is empty, too long or not valid Unicode, and
        the errors of the answerer and of `rewriter.rewritten`.
        """
        text = _checked(message)
        async with self._busy:
            with files_of(self.model.settings.coach_dir):
                return await self._answered(text, reading or read_intent(text), deadline, documents)

    async def _answered(
        self, text: str, reading: Interpretation, deadline: float | None, documents: frozenset[str]
    ) -> Turn:
        socratic = self.socratic  # it may change during the turn
        coach = self.coach if socratic.mode == "coach" else None
        if coach is not None and not answered_before_the_coach(reading, text, self.history):
            return await self._coached(coach, text, socratic, deadline)
        if reading.intent == "documents" and self.list_documents is not None:
            known = [one for one in await self.list_documents() if not documents or one.id in documents]
            return Turn(reply=TurnReply(text=answer_about_documents(reading, known)))
        if reading.intent not in {"question", "documents"}:
            answer = TurnReply(text=answer_without_documents(reading, self.history))
            return Turn(reply=answer)
        session = self._session(deadline)
        query = await rewritten(text, self.history, session)
        answerer = self.teacher if socratic.mode == "teacher" and self.teacher else self.answerer
        before = conversation(self.history, self.limits.tokens) if query.refers_back else ""
        answer = await answerer(text, query.query, before=before, documents=documents)
        within = self._remember(text, answer, query.query, socratic)
        notes = (reply_phrase("not_rewritten", reason=query.reason),) if query.how == "failed" else ()
        return Turn(
            reply=answer,
            rewritten=query,
            notes=(*notes, *within.notes),
            calls=tuple(session.rows),
        )

    def remember(self, message: str, text: str) -> None:
        """Remember a message that was answered outside a turn."""
        self._remember(message, TurnReply(text=text), message, PLAIN)

    async def settle(self) -> tuple[tuple[str, ...], tuple[LedgerRow, ...]]:
        """Fold what the memory releases; returns the notes and the calls. Most turns need no fold.

        To be awaited after every `reply`, once the answer is shown. A failing model leaves a note.
        """
        async with self._busy:
            session = self._session(None)
            with files_of(self.model.settings.coach_dir):
                done = await settled(
                    self.history,
                    memory=self.memory,
                    limits=self.limits,
                    summarize=lambda summary, exchanges: summarize(session, summary, exchanges),
                )
            self.history = done.history
        return done.notes, tuple(session.rows)

    async def _coached(self, coach: Questioner, text: str, socratic: Socratic, deadline: float | None) -> Turn:
        answer = await coach(text, history=self.history, socratic=socratic, deadline=deadline)
        notes = self._remember(text, answer, text, socratic).notes if answer.remembered else ()
        return Turn(reply=answer, notes=notes)

    def _remember(self, text: str, answer: TurnReply, standalone: str, socratic: Socratic) -> CompactionResult:
        longer = self.history.with_exchange(
            question=text,
            answer=answer.text.strip() or answer.short_answer,
            standalone=standalone,
            mode=answer.kind or socratic.mode,
            short_answer=answer.short_answer,
            topic=answer.topic,
        )
        within = bounded(longer, self.limits)
        self.history = within.history
        return within

    def _session(self, deadline: float | None) -> ModelSession:
        return self.model.session(f"turn {self.history.turns + 1}", method=METHOD, deadline=deadline)


def _checked(message: str) -> str:
    text = message.strip()
    if not text:
        raise InputError("The message is empty; write a question.")
    if len(text) > LONGEST_MESSAGE:
        raise InputError(f"The message has {len(text)} characters; use at most {LONGEST_MESSAGE}.")
    if not text.isascii() and text.encode("utf-8", "ignore").decode("utf-8") != text:
        raise InputError("The message is not valid Unicode; check the terminal's encoding and type it again.")
    return text

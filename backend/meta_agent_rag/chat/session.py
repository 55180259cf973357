"""A study session: one conversation over one corpus, stored under a name."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, cast

from ..agent.engine import OnStep, open_engine
from ..agent.grounded import Checks
from ..chat.summaries.overview import Library
from ..errors import InputError, MetaRagError
from ..grounding.citation import Citation
from ..llm.ledger import LedgerRow, Totals, total
from ..llm.messages import OnText
from ..llm.opening import Given
from ..prompts import check_prompts
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.editing import Progress
from ..retrieval.corpus.naming import addressed, unmarked
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.opening import open_retriever
from ..settings import Settings
from .answerer import GroundedAnswerer, GroundedReply
from .answers import reply_phrase
from .coach.coach import Coach, CoachReply
from .coach.hook import Scope
from .coach.levels import levels
from .coach.meanings import Meanings
from .coach.mode import PLAIN, Mode, Socratic
from .coach.scope import TopicScope
from .coach.topics import Subject, Topic, subject_of, topic_named
from .conversation import Conversation, Turn
from .history import History
from .intent import read_intent
from .own_files import check_files, files_of
from .store import Said, Sessions, Stored, open_sessions
from .transcript import source_lines

DEFAULT = "default"
"""The default session, one for each corpus: see `session_name`."""


@dataclass(kw_only=True)
class ChatSession:
    """A conversation that is stored after every turn; a turn that fails or is cancelled is not part of it.

    Several processes may continue the same conversation: each one's turns are added to those of the others.

    `sources` are the citations of the last answer as plain values, `calls` all calls of this process, `topics` those
    that the coach uses; `catalogue` lists the documents.
    """

    name: str
    corpus: str
    conversation: Conversation
    sessions: Sessions
    sources: tuple[dict[str, Any], ...] = ()
    calls: list[LedgerRow] = field(default_factory=list)
    topics: tuple[Topic, ...] = ()
    catalogue: Library | None = None
    _known: History = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """The conversation as it was last read or stored."""
        self._known = self.history

    @property
    def history(self) -> History:
        """The remembered conversation."""
        return self.conversation.history

    @property
    def totals(self) -> Totals:
        """Calls, tokens and cost of this process's turns."""
        return total(self.calls)

    async def reply(self, message: str) -> Turn:
        """Answer one message and store the conversation; `@name` in it limits the answer to a document.

        Raises the errors of `Conversation.reply` and `naming.addressed`.
        """
        before, mode = (self.history, self.sources), self.socratic.mode
        known = await self.documents() if "@" in message else ()
        text, documents = addressed(message, known)
        reading = read_intent(unmarked(message, known))
        if reading.intent != "documents":
            reading = read_intent(unmarked(text, known))
        turn = await self.conversation.reply(text, reading=reading, documents=documents)
        self.calls.extend(turn.calls)
        if isinstance(turn.reply, GroundedReply):
            self.calls.extend(turn.reply.grounded.calls)
            self.sources = tuple(plain_citation(citation) for citation in turn.reply.grounded.citations)
        if isinstance(turn.reply, CoachReply):
            self.calls.extend(turn.reply.calls)
        places = tuple(source_lines(source)[0] for source in self.sources) if turn.rewritten is not None else ()
        said = Said(question=message, answer=turn.reply.text, sources=places, mode=turn.reply.kind or mode)
        await self._keep_or_forget(said, *before)
        return turn

    async def documents(self) -> tuple[DocumentRecord, ...]:
        """The documents of the corpus."""
        return () if self.catalogue is None else await asyncio.to_thread(self.catalogue.documents)

    @property
    def library(self) -> Library:
        """The source of whole documents. Raises `InputError` if there is no catalogue."""
        if self.catalogue is None:
            raise InputError("This conversation has no list of documents; open it over a corpus.")
        return self.catalogue

    async def remember(self, message: str, text: str) -> None:
        """Remember and store a message answered outside a turn, such as a request for a summary."""
        before = self.history, self.sources
        self.conversation.remember(message, text)
        await self._keep_or_forget(Said(question=message, answer=text), *before)

    async def said(self) -> tuple[Said, ...]:
        """The whole conversation, including what the memory no longer holds."""
        return await self.sessions.said(self.name)

    @property
    def socratic(self) -> Socratic:
        """Mode, level and chosen topic."""
        return self.conversation.socratic

    async def hold(self, *, mode: str | None = None, level: int | None = None, topic: str | None = None) -> str:
        """Change mode, level or topic from the next turn on and store the session; `None` keeps a value.

        Returns the notice for the user, which is never sent to a model. An empty mode is the plain companion, an empty
        topic any topic; a topic chosen without a level starts at its own level. Raises `UnknownNameError` or
        `InputError`; if it fails, nothing changes.
        """
        now = self.socratic
        if topic:
            level = topic_named(self.topics, topic).level if level is None else level
        held = Socratic(
            mode=now.mode if mode is None else cast("Mode", mode),
            level=now.level if level is None else level,
            topic=now.topic if topic is None else topic,
        )
        self.conversation.socratic = held
        try:
            await self._keep()
        except BaseException:
            self.conversation.socratic = now
            raise
        with files_of(self.conversation.model.settings.coach_dir):
            text = notice(held)
            return text if topic is None or topic_notice(held) in text else f"{text} {topic_notice(held)}"

    async def settle(self) -> tuple[str, ...]:
        """Fold older exchanges if due, after the answer is shown; returns the notes."""
        before = self.history
        notes, calls = await self.conversation.settle()
        self.calls.extend(calls)
        if self.history is not before:
            await self._keep()
        return notes

    async def reset(self) -> None:
        """Forget the conversation."""
        self.conversation.history, self.sources = History(), ()
        await self.sessions.forget(self.name)
        await self.sessions.save(self.name, self._stored())
        self._known = self.history

    async def _keep_or_forget(self, said: Said, history: History, sources: tuple[dict[str, Any], ...]) -> None:
        """Store a turn, or restore what was remembered before it."""
        try:
            await self._keep(said)
        except BaseException:
            self.conversation.history, self.sources = history, sources
            raise

    async def _keep(self, said: Said | None = None) -> None:
        """Store the conversation, and continue with the turns that another process has added to it."""
        ours = self._stored()
        remembered = ours.history.turns > self._known.turns
        joined = partial(self._joined, ours)
        change = asyncio.ensure_future(self.sessions.change(self.name, joined, said, remembered=remembered))
        try:
            _, now = await asyncio.shield(change)
        except asyncio.CancelledError:
            with suppress(MetaRagError):  # a change that fails has nothing to undo
                before, now = await change  # it cannot be stopped midway
                if said is not None:
                    nothing = replace(now, history=History(), sources=())
                    await self.sessions.take_back(self.name, now, before or nothing)
            raise
        unchanged = self.history is ours.history  # else a turn ended while this was stored
        if unchanged:
            self.conversation.history = now.history
        if unchanged or now.history is ours.history:
            self._known = now.history

    def _stored(self) -> Stored:
        return Stored(corpus=self.corpus, history=self.history, sources=self.sources, socratic=self.socratic)

    def _joined(self, ours: Stored, stored: Stored | None) -> Stored:
        """What to store: if another process has continued the conversation since, its turns and then the new ones.

        If it has deleted the conversation, only the new turns.
        """
        deleted = stored is None and self._known.turns > 0
        if not deleted and (stored is None or stored.history == self._known):
            return ours
        new = [exchange for exchange in ours.history.exchanges if exchange.turn > self._known.turns]
        if stored is None:
            stored = replace(ours, history=History(), sources=())
        _corpus(self.name, self.corpus, stored)
        history = stored.history
        for exchange in new:
            history = history.continued(exchange)
        return replace(ours, history=history, sources=ours.sources if new else stored.sources)


def notice(socratic: Socratic) -> str:
    """The user's notice about a mode and the chosen topic."""
    name = levels()[socratic.level].name
    held = reply_phrase(f"mode_{socratic.mode or 'plain'}", level=socratic.level, name=name)
    return f"{held} {topic_notice(socratic)}" if socratic.mode == "coach" and socratic.topic else held


def topic_notice(socratic: Socratic) -> str:
    """The user's notice about the chosen topic."""
    return reply_phrase("topic_chosen", topic=socratic.topic) if socratic.topic else reply_phrase("topic_any")


def plain_citation(citation: Citation) -> dict[str, Any]:
    """A citation as plain values."""
    return {**asdict(citation), "span": None if citation.span is None else list(citation.span)}


def session_name(session: str | None, corpus: str | None) -> str:
    """The session's name: the given one, else one for each corpus."""
    return session or f"{DEFAULT}-{corpus or SAMPLE}"


@asynccontextmanager
async def open_chat(
    settings: Settings,
    *,
    corpus: str | None = None,
    session: str | None = None,
    on_step: OnStep | None = None,
    on_text: OnText | None = None,
    on_progress: Progress | None = None,
    model: Given = None,
) -> AsyncIterator[ChatSession]:
    """A study session, new or resumed, with everything that it needs opened and closed around it.

    `corpus` is that of the session if it has one, else `sample`. Raises a `MetaRagError` whose message
    says what to do: faulty prompts of the user's own, an unknown corpus, a session about another corpus.
    """
    check_prompts(settings.prompts_dir, methods=settings.methods_dir)
    check_files(settings.coach_dir)
    name = session_name(session, corpus)
    async with AsyncExitStack() as stack:
        sessions = await stack.enter_async_context(open_sessions(settings.marag_data_dir))
        stored = await sessions.load(name)
        about = _corpus(name, corpus, stored)
        checks = Checks.of(settings, about)
        retriever = await stack.enter_async_context(open_retriever(settings, about, on_progress=on_progress))
        engine = await stack.enter_async_context(open_engine(settings, model=model))
        companion = GroundedAnswerer(
            engine=engine, retriever=retriever, checks=checks, on_step=on_step, on_text=on_text
        )
        history = stored.history if stored is not None else None
        subject = await asyncio.to_thread(subject_of, settings.scope_topics, retriever.corpus.catalogue)
        held = stored.socratic if stored is not None else PLAIN
        if held.topic not in {topic.name for topic in subject.topics}:
            held = replace(held, topic="")  # the documents have changed since
        scope = partial(open_scope, settings, subject, retriever.encoder)
        coach = Coach(
            model=engine.model,
            retriever=retriever,
            open_scope=scope,
            topics=subject.topics,
            meanings=Meanings(encoder=engine.monitor_encoder),
        )
        yield ChatSession(
            name=name,
            corpus=about,
            conversation=Conversation.open(
                engine.model,
                companion,
                history,
                socratic=held,
                teacher=companion.as_teacher(),
                coach=coach,
                list_documents=partial(asyncio.to_thread, retriever.corpus.catalogue.documents),
            ),
            sessions=sessions,
            sources=stored.sources if stored is not None else (),
            topics=subject.topics,
            catalogue=retriever.corpus.catalogue,
        )


async def open_scope(settings: Settings, subject: Subject, encoder: AsyncEncoder) -> Scope | None:
    """What the coach's scope guard compares with; `None` if there are no topics. `encoder` is the corpus's encoder."""
    return TopicScope(subject=subject, encoder=encoder, threshold=settings.scope_threshold) if subject.topics else None


def _corpus(name: str, wanted: str | None, stored: Stored | None) -> str:
    if stored is None:
        return wanted or SAMPLE
    if wanted not in {None, stored.corpus}:
        raise InputError(
            f"The session {name!r} is about the corpus {stored.corpus!r}, not {wanted!r}; give another --session."
        )
    return stored.corpus

"""A study session: one conversation over one corpus, stored under a name."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, cast

from ..agent.engine import OnStep, open_engine
from ..agent.grounded import Checks
from ..errors import InputError
from ..grounding.citation import Citation
from ..llm.ledger import LedgerRow, Totals, total
from ..llm.transport import OnText, Transport
from ..overviews.overview import Library
from ..prompts import check_prompts
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.editing import Progress
from ..retrieval.corpus.naming import addressed
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.opening import open_retriever
from ..settings import Settings
from .answers import reply_phrase
from .companion import Companion, GroundedReply
from .history import History
from .own_files import check_files, files_of
from .sessions import Said, Sessions, Stored, open_sessions
from .socratic.coach import Coach, CoachReply
from .socratic.hook import Scope
from .socratic.levels import levels
from .socratic.meanings import Meanings
from .socratic.mode import PLAIN, Mode, Socratic
from .socratic.scope import TopicScope
from .socratic.topics import Subject, Topic, subject_of, topic_named
from .transcript import source_lines
from .turn import Conversation, Turn

DEFAULT = "default"
"""The default session, one for each corpus: see `session_name`."""


@dataclass(kw_only=True)
class Study:
    """A conversation that is stored after every turn; a turn that fails or is cancelled is not part of it.

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

        Raises the errors of `Conversation.reply`, and `InputError` for a name that no document has.
        """
        history, sources = self.history, self.sources
        text, documents = addressed(message, await self.documents() if "@" in message else ())
        turn = await self.conversation.reply(text, documents=documents)
        self.calls.extend(turn.calls)
        if isinstance(turn.reply, GroundedReply):
            self.calls.extend(turn.reply.grounded.calls)
            self.sources = tuple(plain_citation(citation) for citation in turn.reply.grounded.citations)
        if isinstance(turn.reply, CoachReply):
            self.calls.extend(turn.reply.calls)
        if self.history is not history:
            try:
                await self._keep()
                await self._write_down(message, turn)
            except asyncio.CancelledError:
                self.conversation.history, self.sources = history, sources
                await self._keep()  # it may have been partly or fully written
                raise
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
        self.conversation.remember(message, text)
        await self._keep()
        said = Said(turn=self.history.turns, question=message, answer=text, sources=())
        await self.sessions.write_down(self.name, said)

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
        `InputError`, in which case nothing changes.
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
        await self._keep()
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
        await self._keep()

    async def _write_down(self, message: str, turn: Turn) -> None:
        places = tuple(source_lines(source)[0] for source in self.sources) if turn.rewritten is not None else ()
        said = Said(turn=self.history.turns, question=message, answer=turn.reply.text, sources=places)
        await self.sessions.write_down(self.name, said)

    async def _keep(self) -> None:
        stored = Stored(corpus=self.corpus, history=self.history, sources=self.sources, socratic=self.socratic)
        await self.sessions.save(self.name, stored)


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
async def open_study(
    settings: Settings,
    *,
    corpus: str | None = None,
    session: str | None = None,
    on_step: OnStep | None = None,
    on_text: OnText | None = None,
    on_progress: Progress | None = None,
    transport: Transport | None = None,
) -> AsyncIterator[Study]:
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
        engine = await stack.enter_async_context(open_engine(settings, transport=transport))
        companion = Companion(engine=engine, retriever=retriever, checks=checks, on_step=on_step, on_text=on_text)
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
        yield Study(
            name=name,
            corpus=about,
            conversation=Conversation.open(
                engine.model,
                companion,
                history,
                socratic=held,
                teacher=companion.as_teacher(),
                coach=coach,
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

"""A chat session: one conversation over one corpus, which answers a message at a time and may be stored by name."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

from ..agent.context import Task
from ..agent.engine import Engine, OnStep, open_engine
from ..agent.grounded import Checks, GroundedAnswer, checked
from ..errors import DeadlineError, InputError
from ..grounding.citations import Citation
from ..llm.client import LanguageModel, ModelSession
from ..llm.ledger import LedgerRow
from ..llm.opening import Given
from ..prompts import check_prompts, prompt
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.editing import Progress
from ..retrieval.corpus.naming import addressed
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import Retriever
from ..retrieval.open_retriever import open_retriever
from ..retrieval.passage import Passage
from ..retrieval.retriever import limited
from ..settings import Settings
from .coach.coach import Coach
from .coach.levels import PLAIN, Mode, Socratic, levels
from .coach.scope import Topic, TopicScope, subject_of, topic_named
from .history import History, TurnReply, compacted, conversation
from .intent import Interpretation, answer_without_search, interpreted
from .phrases import check_files, files_of, reply_phrase
from .store import Said, Sessions, Stored, open_sessions
from .transcript import source_lines

METHOD = "conversation"
"""The name of the calls that interpret and summarise, in ledger rows."""

LONGEST_MESSAGE = 1000
"""The most characters of a message, as of a question to the service."""


@dataclass(frozen=True, kw_only=True)
class DocumentsReply(TurnReply):
    """A reply with the grounded answer behind it."""

    grounded: GroundedAnswer


class Answerer(Protocol):
    """Answers a question from the documents."""

    async def __call__(
        self, question: str, standalone: str, *, before: str = "", documents: frozenset[str] = frozenset()
    ) -> TurnReply:
        """The answer to `question`, the user's own words; `standalone` is its self-contained form.

        `before` is the conversation that the question refers to, empty if it stands alone. `documents` are the ids of
        those that it is to be answered from, all if empty. An error raised here ends the turn.
        """


@dataclass(frozen=True, kw_only=True)
class GroundedAnswerer:
    """Answers from one corpus, or from supplied `evidence`: the loop, then every check.

    `manner` tells the writer how to write; `on_step` is called as each node of the graph starts. `deadline` is a
    `time.monotonic` timestamp for loop and checks.
    """

    engine: Engine
    retriever: Retriever | None
    checks: Checks
    evidence: Sequence[Passage] | None = None
    on_step: OnStep | None = None
    manner: str = ""
    method: str = "chat"
    question_id: str = ""
    deadline: float | None = None

    def as_teacher(self) -> "GroundedAnswerer":
        """The same answerer, explaining to a learner in simple terms."""
        return replace(self, manner=prompt("teacher", self.engine.settings.prompts_dir).text())

    async def __call__(
        self, question: str, standalone: str, *, before: str = "", documents: frozenset[str] = frozenset()
    ) -> DocumentsReply:
        """See `Answerer`. Raises `DeadlineError` if there is only a draft that was not judged."""
        task = Task(
            question=standalone,
            asked=question,
            conversation=before,
            manner=self.manner,
            evidence=self.evidence,
            retriever=None if self.retriever is None else limited(self.retriever, documents),
            grounded=True,
            id=self.question_id,
            method=self.method,
            deadline=self.deadline,
        )
        answer = await self.engine.run(task, on_step=self.on_step)
        if answer.stop_reason == DeadlineError.stop_reason and answer.rounds[answer.chosen].signals is None:
            raise DeadlineError("The time was over before the first draft was judged; ask again.")
        grounded = await checked(self.engine, answer, self.checks, question_id=self.question_id, deadline=self.deadline)
        return DocumentsReply(
            text=grounded.text, short_answer=grounded.short_answer, calls=grounded.calls, grounded=grounded
        )


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The result of one message: the reply, what the message was taken for, notes for the user, and all calls.

    `mode` is that in which it was answered.
    """

    reply: TurnReply
    reading: Interpretation
    mode: str = ""
    notes: tuple[str, ...] = ()
    calls: tuple[LedgerRow, ...] = ()


@dataclass(kw_only=True)
class ChatSession:
    """A conversation with its history; turns run one at a time, and one that fails or is cancelled leaves no trace.

    With `sessions` it is stored under its name after every turn, and continues with what other processes have added;
    if `transcribed`, so is the whole text of every turn.
    `socratic` may be set between any two turns: in the mode `teacher` the `teacher` replaces the `answerer`, in the
    mode `coach` the `coach`; if that one is missing, the answerer answers. `listed` returns the documents of the corpus
    as they are now. `sources` are the citations of the last answer, `calls` all calls of this process.
    """

    model: LanguageModel
    answerer: Answerer
    name: str = ""
    corpus: str = ""
    history: History = field(default_factory=History)
    socratic: Socratic = PLAIN
    teacher: Answerer | None = None
    coach: Coach | None = None
    listed: Callable[[], tuple[DocumentRecord, ...]] | None = None
    sessions: Sessions | None = None
    transcribed: bool = True
    sources: tuple[Citation, ...] = ()
    calls: list[LedgerRow] = field(default_factory=list)
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics that the coach uses."""
        return () if self.coach is None else self.coach.topics

    async def documents(self) -> tuple[DocumentRecord, ...]:
        """The documents of the corpus."""
        return () if self.listed is None else await asyncio.to_thread(self.listed)

    async def said(self) -> tuple[Said, ...]:
        """The whole conversation, including what the memory no longer holds."""
        return () if self.sessions is None else await self.sessions.said(self.name)

    async def reply(self, message: str, *, deadline: float | None = None, question_id: str = "") -> Turn:
        """Answer one message and store the conversation; `@name` in it limits the answer to a document.

        The coach keeps to its topic instead. `deadline` is a `time.monotonic` timestamp for the interpretation.
        `question_id` names its calls, by default after the turn. Raises `InputError` for a message that is empty, too
        long or not valid Unicode, and the errors of `interpreted`, `addressed` and the answerer.
        """
        text = checked_message(message)
        async with self._busy:
            with files_of(self.model.settings.coach_dir):
                if self.sessions is not None:  # other processes may have added turns
                    self.history = self._stored(await self.sessions.load(self.name)).history
                known = await self.documents() if "@" in text else ()
                asked, documents = addressed(text, known) if known else (text, frozenset[str]())
                session = self._session(deadline, question_id)
                turn = await self._answered(asked, session, deadline, documents)
                await self._remembered(text, asked, turn)
        self.calls.extend(turn.calls)
        return turn

    async def settle(self) -> tuple[str, ...]:
        """Fold older exchanges if due; to be awaited once the answer is shown. Returns notes for the user."""
        async with self._busy:
            before, session = self.history, self._session(None)
            with files_of(self.model.settings.coach_dir):
                history, note = await compacted(before, session)
            self.calls.extend(session.rows)
            if history != before:
                # otherwise another process has continued the conversation since
                await self._save(lambda now: replace(now, history=history) if now.history == before else now)
        return (note,) if note else ()

    async def hold(self, *, mode: str | None = None, level: int | None = None, topic: str | None = None) -> str:
        """Change mode, level or topic from the next turn on, and store them; `None` keeps a value.

        Returns the notice for the user, which is never sent to a model. An empty mode is the plain one, an empty topic
        any topic; a topic chosen without a level starts at its own level. Raises `UnknownNameError` or `InputError`,
        and then nothing changes.
        """
        now = self.socratic
        if topic:
            level = topic_named(self.topics, topic).level if level is None else level
        held = Socratic(
            mode=now.mode if mode is None else cast("Mode", mode),
            level=now.level if level is None else level,
            topic=now.topic if topic is None else topic,
        )
        await self._save(lambda now: replace(now, socratic=held))
        self.socratic = held
        with files_of(self.model.settings.coach_dir):
            text = notice(held)
            return text if topic is None or topic_notice(held) in text else f"{text} {topic_notice(held)}"

    async def reset(self) -> None:
        """Forget the conversation."""
        if self.sessions is not None:
            await self.sessions.forget(self.name)
        await self._save(lambda now: replace(now, history=History(), sources=()))

    async def _answered(
        self, text: str, session: ModelSession, deadline: float | None, documents: frozenset[str]
    ) -> Turn:
        socratic = self.socratic  # it may change during the turn
        coach = self.coach if socratic.mode == "coach" else None
        reading = await interpreted(text, self.history, session)
        searches = reading.intent in {"question", "change_last_answer"}
        notes: tuple[str, ...] = ()
        if coach is not None and not answered_before_the_coach(reading, self.history):
            reply: TurnReply = await coach(
                text,
                history=self.history,
                socratic=socratic,
                reading=reading,
                deadline=deadline,
                question_id=session.question_id,
            )
        elif not searches and (self.listed is not None or reading.intent != "about_documents"):
            known = [one for one in await self.documents() if not documents or one.id in documents]
            reply = TurnReply(text=answer_without_search(reading, self.history, known), remembered=False)
        else:
            answerer = self.teacher if socratic.mode == "teacher" and self.teacher else self.answerer
            before = conversation(self.history, self.model.settings.memory_tokens) if reading.refers_back else ""
            reply = await answerer(text, reading.standalone, before=before, documents=documents)
            left_out = reply.grounded.left_out if isinstance(reply, DocumentsReply) else ()
            notes = (*([reply_phrase("not_rewritten", reason=reading.fault)] if reading.fault else []), *left_out)
        return Turn(reply=reply, reading=reading, mode=socratic.mode, notes=notes, calls=(*session.rows, *reply.calls))

    async def _remembered(self, message: str, asked: str, turn: Turn) -> None:
        """Store a turn, which is complete from here on."""
        reply = turn.reply
        cited = reply.grounded.citations if isinstance(reply, DocumentsReply) else None

        def longer(now: Stored) -> Stored:
            if not reply.remembered:
                return now
            history = now.history.with_exchange(
                question=asked,
                answer=reply.text.strip() or reply.short_answer,
                standalone=turn.reading.standalone,
                mode=reply.kind or turn.mode,
                short_answer=reply.short_answer,
            )
            return replace(now, history=history, sources=now.sources if cited is None else cited)

        places = tuple(source_lines(citation)[0] for citation in cited or ())
        await self._save(longer, Said(question=message, answer=reply.text, sources=places))

    async def _save(self, change: Callable[[Stored], Stored], said: Said | None = None) -> None:
        """Change the conversation, and what is stored of it, in one step."""
        if self.sessions is None:
            stored = change(self._stored(None))
        else:
            text = said if self.transcribed else None
            work = self.sessions.change(self.name, lambda stored: change(self._stored(stored)), text)
            stored = await asyncio.shield(work)
        self.history, self.sources = stored.history, stored.sources

    def _stored(self, stored: Stored | None) -> Stored:
        """What is stored now, else an empty conversation; with this process's mode."""
        if stored is None:
            history = self.history if self.sessions is None else History()
            return Stored(corpus=self.corpus, history=history, sources=self.sources, socratic=self.socratic)
        corpus_of(self.name, self.corpus, stored)
        return replace(stored, socratic=self.socratic)

    def _session(self, deadline: float | None, question_id: str = "") -> ModelSession:
        named = question_id or f"turn {self.history.turns + 1}"
        return self.model.session(named, method=METHOD, deadline=deadline)


def answered_before_the_coach(reading: Interpretation, history: History) -> bool:
    """Whether a message in coaching is not for the coach: about the conversation or the documents, or small talk.

    After the coach's question only thanks and farewells are small talk; the rest may be the learner's answer.
    """
    if reading.intent in {"about_conversation", "about_documents"}:
        return True
    if reading.intent != "small_talk" or reading.kind == "capabilities":
        return False
    asked = bool(history.exchanges) and history.exchanges[-1].is_coaching
    return not asked or reading.kind in {"thanks", "farewell", "greeting"}


def checked_message(message: str) -> str:
    """The message without surrounding white space.

    Raises `InputError` if it is empty, too long or not valid Unicode.
    """
    text = message.strip()
    if not text:
        raise InputError("The message is empty; write a question.")
    if len(text) > LONGEST_MESSAGE:
        raise InputError(f"The message has {len(text)} characters; use at most {LONGEST_MESSAGE}.")
    if text.encode("utf-8", "ignore").decode("utf-8") != text:
        raise InputError("The message is not valid Unicode; check the terminal's encoding and type it again.")
    return text


def notice(socratic: Socratic) -> str:
    """The user's notice about a mode and the chosen topic."""
    name = levels()[socratic.level].name
    held = reply_phrase(f"mode_{socratic.mode or 'plain'}", level=socratic.level, name=name)
    return f"{held} {topic_notice(socratic)}" if socratic.mode == "coach" and socratic.topic else held


def topic_notice(socratic: Socratic) -> str:
    """The user's notice about the chosen topic."""
    return reply_phrase("topic_chosen", topic=socratic.topic) if socratic.topic else reply_phrase("topic_any")


def session_name(session: str | None, corpus: str | None) -> str:
    """The session's name: the given one, else one for each corpus."""
    return session or f"default-{corpus or SAMPLE}"


def corpus_of(name: str, wanted: str | None, stored: Stored | None) -> str:
    """The corpus of a session. Raises `InputError` if it is about another one than `wanted`."""
    if stored is None:
        return wanted or SAMPLE
    if wanted not in {None, stored.corpus}:
        raise InputError(
            f"The session {name!r} is about the corpus {stored.corpus!r}, not {wanted!r}; give another --session."
        )
    return stored.corpus


@asynccontextmanager
async def open_chat(
    settings: Settings,
    *,
    corpus: str | None = None,
    session: str | None = None,
    on_step: OnStep | None = None,
    on_progress: Progress | None = None,
    model: Given = None,
) -> AsyncIterator[ChatSession]:
    """A chat session, new or resumed, with everything that it needs opened and closed around it.

    `corpus` is that of the session if it has one, else `sample`. Raises a `MetaRagError` whose message
    says what to do: faulty prompts of the user's own, an unknown corpus, a session about another corpus.
    """
    check_prompts(settings.prompts_dir, methods=settings.methods_dir)
    check_files(settings.coach_dir)
    name = session_name(session, corpus)
    async with AsyncExitStack() as stack:
        sessions = await stack.enter_async_context(open_sessions(settings.marag_data_dir))
        stored = await sessions.load(name)
        about = corpus_of(name, corpus, stored)
        checks = Checks.of(settings)
        retriever = await stack.enter_async_context(open_retriever(settings, about, on_progress=on_progress))
        engine = await stack.enter_async_context(open_engine(settings, model=model))
        answerer = GroundedAnswerer(engine=engine, retriever=retriever, checks=checks, on_step=on_step)
        subject = await asyncio.to_thread(subject_of, retriever.corpus.catalogue)
        scope = TopicScope(subject=subject, encoder=retriever.encoder, threshold=settings.scope_threshold)
        held = PLAIN if stored is None else stored.socratic
        if held.topic not in {topic.name for topic in subject.topics}:
            held = replace(held, topic="")  # the documents have changed since
        yield ChatSession(
            model=engine.model,
            answerer=answerer,
            name=name,
            corpus=about,
            history=History() if stored is None else stored.history,
            socratic=held,
            teacher=answerer.as_teacher(),
            coach=Coach(model=engine.model, retriever=retriever, scope=scope, topics=subject.topics),
            listed=retriever.corpus.documents,
            sessions=sessions,
            sources=() if stored is None else stored.sources,
        )

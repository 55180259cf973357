"""Answers one question for a client, over a corpus or a supplied text: run, checked, and within the deadline."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...agent.context import Task
from ...agent.engine import Engine, OnStep
from ...agent.grounded import Checks, GroundedAnswer, checked
from ...chat.coach.coach import CoachReply
from ...chat.history import HINT, History, conversation
from ...chat.intent import Interpretation, answer_without_search, interpreted
from ...chat.memory import bounded
from ...chat.phrases import files_of
from ...chat.session import answered_before_the_coach
from ...errors import InputError, RequestError, UnknownNameError
from ...grounding.styles import chosen
from ...ingestion.chunkers.characters import spans
from ...llm.ledger import total
from ...prompts import prompt
from ...retrieval.corpus.catalogue import DocumentRecord
from ...retrieval.corpus.naming import addressed
from ...retrieval.hybrid import HybridRetriever, Retrieval, Retriever
from ...retrieval.limited import limited
from ...retrieval.passage import Passage, passage_id
from ..opening import CONTEXT, Service
from ..request_record import RequestRecord, Result, SmallTalk
from ..schemas import CONTEXT_RESTRICTED, FULL_CORPUS, AskOptions, AskRequest, AskResponse, ScreenedOut, as_checked
from .deadline import require_verified, within

METHOD = "service"
"""The name of the service's calls in ledger rows."""


async def ask(
    service: Service,
    asked: AskRequest,
    record: RequestRecord,
    on_step: OnStep | None = None,
    *,
    history: History | None = None,
) -> AskResponse:
    """Answer within the deadline of the whole request, or raise: partly verified answers are never returned.

    `history` is the conversation so far, if the client sends it instead of naming a session.
    Raises `RequestError`, or a `MetaRagError` that `failures.refusal` translates.
    """
    record.question, record.session = asked.question, asked.session
    record.source_mode, record.mode = asked.source_mode, asked.mode
    restricted = asked.source_mode == CONTEXT_RESTRICTED
    record.corpus = None if restricted else corpus_of(service, record, asked.corpus)
    with recorded(service, record):
        deadline = record.arrived + service.budgets.total
        before = None if history is None else bounded(history, service.sessions.limits).history
        loop_ends = deadline - service.budgets.finish
        task = _Task(service=service, asked=asked, record=record, loop_ends=loop_ends, on_step=on_step)
        result = record.result = await within(_replied(task, before), deadline)
    return as_response(record, result, asked)


@contextmanager
def recorded(service: Service, record: RequestRecord) -> Iterator[None]:
    """Add the model calls made inside to the record, with their times, also if the work is cut off."""
    service.calls.records[record.query_id] = record
    try:
        yield
    finally:
        service.calls.records.pop(record.query_id, None)
        service.faults.update(dict.fromkeys(record.degraded, time.monotonic()))
        for call in record.calls:
            record.took(call.row.stage, call.row.latency_s)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """One question, and the `time.monotonic` timestamp at which its loop ends."""

    service: Service
    asked: AskRequest
    record: RequestRecord
    loop_ends: float
    on_step: OnStep | None


async def _replied(task: _Task, before: History | None) -> Result:
    """The answer, or the coach's question, stored in the session; small talk is answered without documents."""
    asked, record = task.asked, task.record
    history = await _before(task.service, record) if before is None else before
    known = await _known(task)
    message, documents = _addressed(task, known)
    model = task.service.engine.model.session(record.query_id, method=METHOD, deadline=task.loop_ends)
    reading = await interpreted(message, history, model)
    if asked.mode == "coach" and not answered_before_the_coach(reading, history):
        reply = await _coached(task, message, reading, history)
        if reply.remembered:
            exchange = {"question": message, "answer": reply.text, "standalone": message}
            await _remember(task.service, record, **exchange, mode=reply.kind, topic=reply.topic)
        return reply
    searches = reading.intent in {"question", "change_last_answer"}
    if not searches and (record.corpus is not None or reading.intent != "about_documents"):
        known = await documents_of(task.service, record.corpus) if record.corpus is not None else ()
        listed = [one for one in known if not documents or one.id in documents]
        with files_of(task.service.settings.coach_dir):
            return SmallTalk(text=answer_without_search(reading, history, listed), intent=reading.intent)
    result = await _answered(task, message, reading, documents, history)
    await _remember(
        task.service,
        record,
        question=message,
        answer=result.text,
        standalone=reading.standalone,
        mode="teacher" if asked.mode == "teacher" else "",
        short_answer=result.short_answer,
    )
    return result


async def _coached(task: _Task, message: str, reading: Interpretation, history: History) -> CoachReply:
    options = task.asked.options
    try:
        return await task.service.coaches.reply(
            message,
            record=task.record,
            retriever=_watched(task.service, task.record.corpus or "", task.record),
            level=options.level or 1,
            topic=options.topic or "",
            history=history,
            reading=reading,
            deadline=task.loop_ends,
        )
    except UnknownNameError as error:
        raise RequestError(404, "unknown_topic", str(error)) from None


async def _answered(
    task: _Task, message: str, reading: Interpretation, documents: frozenset[str], history: History
) -> GroundedAnswer:
    service, asked, record = task.service, task.asked, task.record
    engine = _engine(service.engine, asked.options)
    retriever = None if record.corpus is None else limited(_watched(service, record.corpus, record), documents)
    evidence = None if retriever is not None else supplied(service, asked)
    checks = _checks(service.checks[record.corpus or CONTEXT], asked.options)
    manner = prompt("teacher", engine.settings.prompts_dir).text() if asked.mode == "teacher" else ""
    tokens = service.sessions.limits.tokens
    drafted = await engine.run(
        Task(
            question=reading.standalone,
            asked=message,
            conversation=conversation(history, tokens) if reading.refers_back else "",
            manner=manner,
            evidence=evidence,
            retriever=retriever,
            grounded=True,
            id=record.query_id,
            method=METHOD,
            deadline=task.loop_ends,
        ),
        on_step=task.on_step,
    )
    record.note_dropped(drafted.dropped)  # of a supplied text, too, which no retriever screens
    require_verified(drafted)
    started = time.perf_counter()
    result = await checked(engine, drafted, checks, question_id=record.query_id, deadline=task.loop_ends)
    record.took("checks", time.perf_counter() - started)
    return result


async def _remember(service: Service, record: RequestRecord, **exchange: str) -> None:
    if record.session is not None and record.client is not None:
        await service.sessions.remember(record.client.id, record.session, record.corpus or CONTEXT, **exchange)


async def _before(service: Service, record: RequestRecord) -> History:
    if record.session is None or record.client is None:
        return History()
    return await service.sessions.before(record.client.id, record.session, record.corpus or CONTEXT)


async def _known(task: _Task) -> tuple[DocumentRecord, ...]:
    """The documents of the corpus, if the request may name some."""
    corpus, names = task.record.corpus, task.asked.options.documents
    if corpus is None or not (names or "@" in task.asked.question):
        return ()
    return await documents_of(task.service, corpus)


async def documents_of(service: Service, corpus: str) -> tuple[DocumentRecord, ...]:
    """The documents of a served corpus."""
    over = service.retrievers[corpus]
    return await asyncio.to_thread(over.corpus.catalogue.documents) if isinstance(over, HybridRetriever) else ()


def _addressed(task: _Task, known: Sequence[DocumentRecord]) -> tuple[str, frozenset[str]]:
    """The question without its `@name`s, and the ids of the documents to which it is limited, none for all.

    `@name` limits it further than the option `documents`. Raises `RequestError` for an unknown document.
    """
    asked, corpus = task.asked, task.record.corpus
    names = asked.options.documents or ()
    if corpus is None or not (names or "@" in asked.question):
        return asked.question, frozenset()
    if asked.question == "@":
        raise RequestError(422, "invalid_request", "The question is only '@'; write a document's name after it.")
    try:
        message, documents = addressed(asked.question, known, names)
    except InputError as error:
        words = f"{error} GET /v1/corpora/{corpus}/documents lists all documents."
        raise RequestError(404, "unknown_document", words) from None
    if not message:
        raise RequestError(422, "invalid_request", "The question only names a document; write a question after it.")
    return message, documents


def corpus_of(service: Service, record: RequestRecord, name: str | None) -> str:
    """The corpus that a request is about. Raises `RequestError` if it is not served to the key."""
    assert record.client is not None
    return record.client.corpus(name, service.retrievers)


def _watched(service: Service, corpus: str, record: RequestRecord) -> Retriever:
    return WatchedRetriever.over(service.retrievers[corpus], record, side_seconds=service.budgets.retrieval)


def supplied(service: Service, asked: AskRequest) -> list[Passage]:
    """The passages of the supplied text; a long text is chunked like a document.

    Raises `RequestError` (413) if it exceeds SERVICE_CONTEXT_CHARACTERS.
    """
    settings, texts = service.settings, asked.context_texts()
    length, most = sum(map(len, texts)), settings.service_context_characters
    if length > most:
        raise RequestError(413, "too_large", f"The context has {length} characters; send at most {most}.")
    titles = [""] if isinstance(asked.context, str) else [passage.title for passage in asked.context or ()]
    found: dict[str, Passage] = {}
    for number, (title, text) in enumerate(zip(titles, texts, strict=True), start=1):
        name = title.strip() or f"Passage {number}"
        for start, end in spans(text, 0, len(text), settings.chunk_characters, settings.chunk_overlap):
            piece = text[start:end]
            id_ = passage_id(name, piece)
            found.setdefault(id_, Passage(id=id_, doc_id=str(number), title=name, text=piece, span=(start, end)))
    return list(found.values())


def _engine(engine: Engine, options: AskOptions) -> Engine:
    if options.max_rounds is None:
        return engine
    rounds = min(options.max_rounds, engine.settings.max_metacognitive_rounds)
    return replace(engine, settings=engine.settings.model_copy(update={"max_metacognitive_rounds": rounds}))


def _checks(checks: Checks, options: AskOptions) -> Checks:
    if options.citation_style is not None:
        try:
            checks = replace(checks, style=chosen(options.citation_style))
        except InputError as error:
            raise RequestError(422, "invalid_request", str(error)) from None
    if options.unsupported_claims is not None:
        settings = checks.settings.model_copy(update={"unsupported_claims": options.unsupported_claims})
        checks = replace(checks, settings=settings)
    return checks


def as_response(record: RequestRecord, result: Result, asked: AskRequest) -> AskResponse:
    """A checked answer, or a coach's question, as sent to the client."""
    cost = total(call.row for call in record.calls).cost_usd
    common: dict[str, Any] = {
        "query_id": record.query_id,
        "answer_id": record.answer_id,
        "cost_usd": None if cost is None else float(cost),
        "source_mode": CONTEXT_RESTRICTED if record.corpus is None else FULL_CORPUS,
        "corpus": record.corpus,
        "mode": asked.mode,
        "degraded": sorted(record.degraded),
        "screened": [ScreenedOut(**asdict(gone)) for gone in record.dropped if gone.kinds],
    }
    if isinstance(result, GroundedAnswer):
        return AskResponse(**common, **as_checked(result))
    common |= {"answer": result.text, "short_answer": "", "citations": [], "confidence": None, "level": None}
    if not isinstance(result, CoachReply):
        return AskResponse(**common, refused=None, rounds=0, stop_reason=result.intent)
    outcome = result.trace.outcome
    return AskResponse(
        **common,
        refused=result.refused,
        rounds=len(result.trace.attempts),
        stop_reason=outcome,
        success=result.acknowledged,
        hint=result.kind == HINT,
        topic=result.topic or None,
    )


@dataclass(frozen=True, kw_only=True)
class WatchedRetriever:
    """Reports every search to the request's record."""

    record: RequestRecord
    retriever: Retriever

    @classmethod
    def over(cls, retriever: Retriever, record: RequestRecord, *, side_seconds: float) -> "WatchedRetriever":
        """Watch a retriever; of a hybrid one, either index may fail or exceed `side_seconds`."""

        def note(side: str, fault: Exception) -> None:
            record.degraded[side] = f"{type(fault).__name__}: {fault}"

        if isinstance(retriever, HybridRetriever):
            retriever = replace(retriever, side_seconds=side_seconds, on_fault=note)
        return cls(record=record, retriever=retriever)

    def limited_to(self, documents: frozenset[str]) -> "WatchedRetriever":
        """This retriever, over the documents with these ids alone."""
        return replace(self, retriever=limited(self.retriever, documents))

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        started = time.perf_counter()
        self.record.queries.extend(queries)
        try:
            retrieval = await self.retriever.retrieve(queries, k=k, exclude=exclude)
        finally:
            self.record.took("retrieval", time.perf_counter() - started)
        self.record.note_dropped(retrieval.dropped)
        return retrieval

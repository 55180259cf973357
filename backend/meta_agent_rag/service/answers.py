"""Answers one question for a client, over a corpus or a supplied text: run, checked, and within the deadline."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from ..agent.context import Task
from ..agent.engine import Answer, Engine, OnStep, Step
from ..agent.grounded import Checks, GroundedAnswer, checked
from ..chat.coach.coach import CoachReply
from ..chat.coach.levels import Socratic
from ..chat.coach.scope import topic_named
from ..chat.history import HINT, History, conversation
from ..chat.intent import Interpretation, answer_without_search, interpreted
from ..chat.phrases import files_of
from ..chat.session import answered_before_the_coach
from ..errors import DeadlineError, InputError, RequestError, UnknownNameError
from ..grounding.citations import chosen
from ..ingestion.chunkers.characters import spans
from ..llm.ledger import total
from ..prompts import prompt
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.naming import addressed
from ..retrieval.hybrid import HybridRetriever, Retrieval, Retriever
from ..retrieval.passage import Passage, passage_id
from ..retrieval.retriever import limited
from .client_sessions import CONTEXT
from .database import within
from .failures import envelope, noted, timed_out
from .request_record import Result, SmallTalk
from .resources import RequestContext, Service
from .schemas import CONTEXT_RESTRICTED, FULL_CORPUS, AskOptions, AskRequest, AskResponse, ScreenedOut, as_checked

Outcome = TypeVar("Outcome")
METHOD = "service"
MOST_CONTEXT = 50_000
"""The most characters of a context that is sent with a question."""
"""The name of the service's calls in ledger rows."""
_SENTENCES = re.compile(r"\S.*?(?:[.!?](?=\s)\s*|\Z)", re.DOTALL)
_QUIET_SECONDS = 10.0


async def ask(
    asked: AskRequest, context: RequestContext, on_step: OnStep | None = None, *, history: History | None = None
) -> AskResponse:
    """Answer within the deadline of the whole request, or raise: partly verified answers are never returned.

    `history` is the conversation so far, if the client sends it instead of naming a session.
    Raises `RequestError`, or a `MetaRagError` that `failures.refusal` translates.
    """
    service = context.service
    context.question, context.session = asked.question, asked.session
    context.source_mode, context.mode = asked.source_mode, asked.mode
    if asked.source_mode == FULL_CORPUS:
        context.corpus = context.client.corpus(asked.corpus, service.retrievers)
    task = _Question(
        service=service,
        asked=asked,
        context=context,
        loop_ends=context.deadline - service.budgets.finish,
        on_step=on_step,
    )
    context.result = result = await in_time(_replied(task, history), context)
    return as_response(context, result, asked)


async def in_time(work: Any, context: RequestContext, words: str | None = None) -> Any:
    """Do the work within the deadline of a request. Raises `RequestError` with 504; failed indexes are noted."""
    try:
        return await within(work, context.deadline - time.monotonic())
    except TimeoutError:
        raise timed_out(words) from None
    finally:
        context.service.faults.update(dict.fromkeys(context.degraded, time.monotonic()))


@dataclass(frozen=True, kw_only=True)
class _Question:
    """One question, and the `time.monotonic` timestamp at which its loop ends."""

    service: Service
    asked: AskRequest
    context: RequestContext
    loop_ends: float
    on_step: OnStep | None


async def _replied(task: _Question, before: History | None) -> Result:
    """The answer, or the coach's question, stored in the session; small talk is answered without documents."""
    asked, context = task.asked, task.context
    history = await task.service.sessions.before(context) if before is None else before
    named = context.corpus is not None and (asked.options.documents or "@" in asked.question)
    known = await documents_of(task.service, context.corpus or "") if named else ()
    message, only = _addressed(task, known)
    model = task.service.engine.model.session(context.query_id, method=METHOD, deadline=task.loop_ends)
    reading = await interpreted(message, history, model)
    if asked.mode == "coach" and not answered_before_the_coach(reading, history):
        reply = await _coached(task, message, reading, history)
        if reply.remembered:
            exchange = {"question": message, "answer": reply.text, "standalone": message}
            await task.service.sessions.remember(context, **exchange, mode=reply.kind, topic=reply.topic)
        return reply
    searches = reading.intent in {"question", "change_last_answer"}
    if not searches and (context.corpus is not None or reading.intent != "about_documents"):
        known = () if context.corpus is None else await documents_of(task.service, context.corpus)
        listed = [one for one in known if not only or one.id in only]
        with files_of(task.service.settings.coach_dir):
            return SmallTalk(text=answer_without_search(reading, history, listed), intent=reading.intent)
    result = await _answered(task, message, reading, only, history)
    await task.service.sessions.remember(
        context,
        question=message,
        answer=result.text,
        standalone=reading.standalone,
        mode="teacher" if asked.mode == "teacher" else "",
        short_answer=result.short_answer,
    )
    return result


async def _coached(task: _Question, message: str, reading: Interpretation, history: History) -> CoachReply:
    options, context = task.asked.options, task.context
    coach = await task.service.coaches.coach(context.corpus or "")
    try:
        if options.topic:
            topic_named(coach.topics, options.topic)
    except UnknownNameError as error:
        raise RequestError(404, "unknown_topic", str(error)) from None
    socratic = Socratic(mode="coach", level=options.level or 1, topic=options.topic or "")
    coach = replace(coach, retriever=WatchedRetriever.over(context))
    return await coach(
        message,
        history=history,
        socratic=socratic,
        reading=reading,
        deadline=task.loop_ends,
        question_id=context.query_id,
    )


async def _answered(
    task: _Question, message: str, reading: Interpretation, documents: frozenset[str], history: History
) -> GroundedAnswer:
    service, asked, context = task.service, task.asked, task.context
    engine = _engine(service.engine, asked.options)
    retriever = None if context.corpus is None else limited(WatchedRetriever.over(context), documents)
    evidence = None if retriever is not None else supplied(service, asked)
    checks = _checks(service.checks[context.corpus or CONTEXT], asked.options)
    manner = prompt("teacher", engine.settings.prompts_dir).text() if asked.mode == "teacher" else ""
    tokens = service.settings.memory_tokens
    drafted = await engine.run(
        Task(
            question=reading.standalone,
            asked=message,
            conversation=conversation(history, tokens) if reading.refers_back else "",
            manner=manner,
            evidence=evidence,
            retriever=retriever,
            grounded=True,
            id=context.query_id,
            method=METHOD,
            deadline=task.loop_ends,
        ),
        on_step=task.on_step,
    )
    context.note_dropped(drafted.dropped)  # of a supplied text, too, which no retriever screens
    _require_verified(drafted)
    started = time.perf_counter()
    result = await checked(engine, drafted, checks, question_id=context.query_id, deadline=task.loop_ends)
    context.took("checks", time.perf_counter() - started)
    return result


def _require_verified(answer: Answer) -> None:
    """Raise `DeadlineError` if time ran out before the chosen draft was judged: it must not be shown unverified."""
    if answer.stop_reason == DeadlineError.stop_reason and answer.rounds[answer.chosen].signals is None:
        raise DeadlineError("The deadline passed before the draft was judged; ask a simpler question.")


async def documents_of(service: Service, corpus: str) -> tuple[DocumentRecord, ...]:
    """The documents of a served corpus, none if it has no list of them."""
    over = service.retrievers[corpus]
    return await asyncio.to_thread(over.corpus.catalogue.documents) if isinstance(over, HybridRetriever) else ()


def _addressed(task: _Question, known: Sequence[DocumentRecord]) -> tuple[str, frozenset[str]]:
    """The question without its `@name`s, and the ids of the documents to which it is limited, none for all.

    `@name` limits it further than the option `documents`. Raises `RequestError` for an unknown document.
    """
    asked, corpus = task.asked, task.context.corpus
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


def supplied(service: Service, asked: AskRequest) -> list[Passage]:
    """The passages of the supplied text; a long text is chunked like a document.

    Raises `RequestError` (413) if it exceeds `MOST_CONTEXT`.
    """
    settings, texts = service.settings, asked.context_texts()
    length = sum(map(len, texts))
    if length > MOST_CONTEXT:
        raise RequestError(413, "too_large", f"The context has {length} characters; send at most {MOST_CONTEXT}.")
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


def as_response(context: RequestContext, result: Result, asked: AskRequest) -> AskResponse:
    """A checked answer, or a coach's question, as sent to the client."""
    cost = total(call.row for call in context.calls).cost_usd
    common: dict[str, Any] = {
        "query_id": context.query_id,
        "answer_id": context.answer_id,
        "cost_usd": None if cost is None else float(cost),
        "source_mode": CONTEXT_RESTRICTED if context.corpus is None else FULL_CORPUS,
        "corpus": context.corpus,
        "mode": asked.mode,
        "degraded": sorted(context.degraded),
        "screened": [ScreenedOut(**asdict(gone)) for gone in context.dropped if gone.kinds],
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
    """Reports every search to the request's context."""

    context: RequestContext
    retriever: Retriever

    @classmethod
    def over(cls, context: RequestContext) -> "WatchedRetriever":
        """Watch the corpus of a request; of a hybrid one, either index may fail or be late."""
        retriever = context.service.retrievers[context.corpus or ""]

        def note(side: str, fault: Exception) -> None:
            context.degraded[side] = f"{type(fault).__name__}: {fault}"

        if isinstance(retriever, HybridRetriever):
            retriever = replace(retriever, side_seconds=context.service.budgets.retrieval, on_fault=note)
        return cls(context=context, retriever=retriever)

    def limited_to(self, documents: frozenset[str]) -> "WatchedRetriever":
        """This retriever, over the documents with these ids alone."""
        return replace(self, retriever=limited(self.retriever, documents))

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        started = time.perf_counter()
        self.context.queries.extend(queries)
        try:
            retrieval = await self.retriever.retrieve(queries, k=k, exclude=exclude)
        finally:
            self.context.took("retrieval", time.perf_counter() - started)
        self.context.note_dropped(retrieval.dropped)
        return retrieval


async def events(asked: AskRequest, context: RequestContext) -> AsyncIterator[str]:
    """The server-sent events of one question, until `done`. A failure after the headers is an `error` event.

    If the client disconnects, the work is cancelled together with its calls.
    """
    pending: asyncio.Queue[str | None] = asyncio.Queue()

    def step(begun: Step) -> None:
        pending.put_nowait(event("stage", {"stage": begun.node, "round": len(begun.rounds)}))

    work = asyncio.create_task(ask(asked, context, step))
    work.add_done_callback(lambda _: pending.put_nowait(None))
    try:
        yield event("start", {"query_id": context.query_id, "request_id": context.request_id})
        while (line := await _next(pending)) is not None:
            yield line
        try:
            response = work.result()
            await context.service.record(context, 200)
        except Exception as error:  # noqa: BLE001  # the headers are sent: the client receives an event
            refused = noted(context, error)
            await context.service.record(context, refused.status)
            yield event("error", envelope(refused, context.request_id))
        else:
            for sentence in sentences(response.answer):
                yield event("text", {"text": sentence})
            yield event("answer", response.model_dump(mode="json"))
        yield event("done", {})
    finally:
        if not work.done():
            context.went()
            work.cancel()
            await asyncio.wait({work})


def sentences(text: str) -> list[str]:
    """The text in the pieces in which it is sent; joined, they equal the text."""
    return _SENTENCES.findall(text)


async def _next(pending: "asyncio.Queue[str | None]") -> str | None:
    """The next event, or a comment that keeps the connection alive if there is none."""
    try:
        async with asyncio.timeout(_QUIET_SECONDS):
            return await pending.get()
    except TimeoutError:
        return ": waiting\n\n"


def event(name: str, data: Mapping[str, Any]) -> str:
    """One event with its data as one line of JSON."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"

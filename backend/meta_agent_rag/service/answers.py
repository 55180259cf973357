"""Answers one question for a client, over a corpus or a supplied text: run, checked, and within the deadline."""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..agent.context import Task
from ..agent.engine import OnStep, Step
from ..agent.grounded import checked
from ..chat.coach.levels import Socratic
from ..chat.coach.scope import topic_named
from ..chat.history import History
from ..chat.session import ChatSession, DocumentsReply, Turn
from ..errors import DeadlineError, RequestError
from ..ingestion.chunking import spans
from ..llm.ledger import total
from ..prompts import prompt
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.hybrid import HybridRetriever, Retrieval, Retriever
from ..retrieval.passage import Passage, passage_id
from ..retrieval.retriever import limited
from ..settings import Settings
from .database import within
from .failures import envelope, noted, timed_out
from .request import RequestContext
from .resources import CONTEXT, Service
from .schemas import FULL_CORPUS, AskRequest, AskResponse, reply_fields

METHOD = "service"
"""The name of the service's calls in ledger rows."""
MOST_CONTEXT = 50_000
"""The most characters of a context that is sent with a question."""
_SENTENCES = re.compile(r"\S.*?(?:[.!?](?=\s)\s*|\Z)", re.DOTALL)
_QUIET_SECONDS = 10.0


async def ask(
    asked: AskRequest, context: RequestContext, on_step: OnStep | None = None, *, history: History | None = None
) -> AskResponse:
    """Answer within the deadline of the whole request, or raise: partly verified answers are never returned.

    `history` is the conversation so far, if the client sends it instead of naming a session.
    Raises `RequestError`, or a `MetaRagError` that `failures.refusal` translates.
    """
    context.question, context.session = asked.question, asked.session
    context.source_mode, context.mode = asked.source_mode, asked.mode
    if asked.source_mode == FULL_CORPUS:
        context.corpus = context.client.corpus(asked.corpus, context.service.retrievers)
    try:
        turn = await within(_turn(asked, context, on_step, history), context.deadline - time.monotonic())
    except TimeoutError:
        raise timed_out() from None
    finally:
        context.service.faults.update(dict.fromkeys(context.degraded, time.monotonic()))
    context.turn = turn
    return _response(asked, context, turn)


async def _turn(asked: AskRequest, context: RequestContext, on_step: OnStep | None, history: History | None) -> Turn:
    """The turn of the conversation, stored in the session if one is named."""
    service, corpus = context.service, context.corpus or CONTEXT
    retriever = None if context.corpus is None else WatchedRetriever.over(context)
    coach = None
    if retriever is not None and asked.mode == "coach":
        coach = replace(await service.coach(corpus), retriever=retriever)
        if asked.options.topic is not None:
            topic_named(coach.topics, asked.options.topic)  # an unknown one costs no call
    about = hashlib.sha256(corpus.encode()).hexdigest()[:8]  # a session about another corpus is another one
    loop_ends = context.deadline - service.budgets.finish

    async def answered(
        question: str, standalone: str, *, before: str = "", documents: frozenset[str] = frozenset()
    ) -> DocumentsReply:
        engine, checks = service.engine, service.checks[corpus]
        task = Task(
            question=standalone,
            asked=question,
            conversation=before,
            manner=prompt("teacher", engine.settings.prompts_dir).text() if asked.mode == "teacher" else "",
            evidence=supplied(service.settings, asked) if retriever is None else None,
            retriever=None if retriever is None else limited(retriever, documents),
            grounded=True,
            id=context.query_id,
            method=METHOD,
            deadline=loop_ends,
        )
        drafted = await engine.run(task, on_step=on_step)
        context.note_dropped(drafted.dropped)  # of a supplied text, too, which no retriever screens
        if drafted.stop_reason == DeadlineError.stop_reason and drafted.rounds[drafted.chosen].signals is None:
            raise timed_out()  # before the draft was judged: it must not be shown unverified
        started = time.perf_counter()
        result = await checked(engine, drafted, checks, question_id=context.query_id, deadline=loop_ends)
        context.took("checks", time.perf_counter() - started)
        return DocumentsReply(text=result.text, short_answer=result.short_answer, grounded=result)

    session = ChatSession(
        model=service.engine.model,
        answerer=answered,
        name=f"{context.client.id}.{about}.{asked.session}",
        corpus=corpus,
        history=History() if history is None else history,
        socratic=Socratic(
            mode="" if asked.mode == "grounded" else asked.mode,
            level=asked.options.level or 1,
            topic=asked.options.topic or "",
        ),
        coach=coach,
        catalogue=None if retriever is None else service.catalogue(corpus),
        sessions=None if asked.session is None else service.sessions,
        transcribed=False,
    )
    return await session.reply(asked.question, deadline=loop_ends, question_id=context.query_id)


async def documents_of(service: Service, corpus: str) -> tuple[DocumentRecord, ...]:
    """The documents of a served corpus, none if it has no list of them."""
    catalogue = service.catalogue(corpus)
    return () if catalogue is None else await asyncio.to_thread(catalogue.documents)


def supplied(settings: Settings, asked: AskRequest) -> list[Passage]:
    """The passages of the supplied text; a long text is chunked like a document.

    Raises `RequestError` (413) if it exceeds `MOST_CONTEXT`.
    """
    given = asked.context or ()
    texts = [("", given)] if isinstance(given, str) else [(passage.title, passage.text) for passage in given]
    length = sum(len(text) for _, text in texts)
    if length > MOST_CONTEXT:
        raise RequestError(413, "too_large", f"The context has {length} characters; send at most {MOST_CONTEXT}.")
    found: dict[str, Passage] = {}
    for number, (title, text) in enumerate(texts, start=1):
        name = title.strip() or f"Passage {number}"
        for start, end in spans(text, 0, len(text), settings.chunk_characters, settings.chunk_overlap):
            piece = text[start:end]
            id_ = passage_id(name, piece)
            found.setdefault(id_, Passage(id=id_, doc_id=str(number), title=name, text=piece, span=(start, end)))
    return list(found.values())


def _response(asked: AskRequest, context: RequestContext, turn: Turn) -> AskResponse:
    cost = total(call.row for call in context.calls).cost_usd
    return AskResponse(
        query_id=context.query_id,
        answer_id=context.answer_id,
        cost_usd=None if cost is None else float(cost),
        source_mode=asked.source_mode,
        corpus=context.corpus,
        mode=asked.mode,
        degraded=sorted(context.degraded),
        screened=[gone for gone in context.dropped if gone.kinds],
        **reply_fields(turn),
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
        pending.put_nowait(_event("stage", {"stage": begun.node, "round": len(begun.rounds)}))

    work = asyncio.create_task(ask(asked, context, step))
    work.add_done_callback(lambda _: pending.put_nowait(None))
    try:
        yield _event("start", {"query_id": context.query_id, "request_id": context.request_id})
        while (line := await _next(pending)) is not None:
            yield line
        try:
            response = work.result()
            await context.service.record(context, 200)
        except Exception as error:  # noqa: BLE001  # the headers are sent: the client receives an event
            refused = noted(context, error)
            await context.service.record(context, refused.status)
            yield _event("error", envelope(refused, context.request_id))
        else:
            for sentence in sentences(response.answer):
                yield _event("text", {"text": sentence})
            yield _event("answer", response.model_dump(mode="json"))
        yield _event("done", {})
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


def _event(name: str, data: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"

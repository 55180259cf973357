"""Answers one question for a client, over a corpus or a supplied text: run, checked, and within the deadline."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from ..agent.engine import OnStep, Step
from ..chat.coach.levels import Socratic
from ..chat.coach.scope import topic_named
from ..chat.history import History
from ..chat.session import ChatSession, GroundedAnswerer, Turn
from ..errors import RequestError
from ..ingestion.chunking import spans
from ..llm.ledger import total
from ..retrieval.hybrid import Retriever
from ..retrieval.passage import Passage, passage_id
from ..settings import Settings
from .database import within
from .failures import envelope, noted, timed_out
from .request import RequestContext
from .schemas import FULL_CORPUS, AskRequest, AskResponse, reply_fields

METHOD = "service"
"""The name of the service's calls in ledger rows."""
MOST_CONTEXT = 50_000
"""The most characters of a context that is sent with a question."""
_CONTEXT = "(context)"
"""Stands for the corpus of a session about supplied texts; no corpus can have this name."""


async def ask(
    asked: AskRequest, context: RequestContext, on_step: OnStep | None = None, *, history: History | None = None
) -> AskResponse:
    """Answer within the deadline of the whole request, or raise: partly verified answers are never returned.

    `history` is the conversation so far, if the client sends it instead of naming a session.
    Raises `RequestError`, or a `MetaRagError` that `failures.refusal` translates.
    """
    context.asked = asked
    if asked.source_mode == FULL_CORPUS:
        context.corpus = context.client.corpus(asked.corpus, context.service.retrievers)
    try:
        turn = await within(_turn(asked, context, on_step, history), context.deadline - time.monotonic())
    except TimeoutError:
        raise timed_out() from None
    context.turn = turn
    cost = total(call.row for call in context.calls).cost_usd
    return AskResponse(
        query_id=context.query_id,
        cost_usd=None if cost is None else float(cost),
        corpus=context.corpus,
        degraded=sorted(context.degraded),
        **reply_fields(turn),
    )


async def _turn(asked: AskRequest, context: RequestContext, on_step: OnStep | None, history: History | None) -> Turn:
    """The turn of the conversation, stored in the session if one is named."""
    service, corpus = context.service, context.corpus or _CONTEXT
    retriever, catalogue = _retriever(context), service.catalogue(context.corpus)
    coach = None
    if retriever is not None and asked.mode == "coach":
        coach = replace(await service.coach(corpus), retriever=retriever)
        if asked.options.topic is not None:
            topic_named(coach.topics, asked.options.topic)  # an unknown one costs no call
    loop_ends = context.deadline - service.finish_seconds
    answerer = GroundedAnswerer(
        engine=service.engine,
        retriever=retriever,
        evidence=supplied(service.settings, asked) if retriever is None else None,
        checks=service.checks,
        on_step=on_step,
        method=METHOD,
        question_id=context.query_id,
        deadline=loop_ends,
    )
    about = hashlib.sha256(corpus.encode()).hexdigest()[:8]  # a session about another corpus is another one
    session = ChatSession(
        model=service.engine.model,
        answerer=answerer.as_teacher() if asked.mode == "teacher" else answerer,
        name=f"{context.client.id}.{about}.{asked.session}",
        corpus=corpus,
        history=History() if history is None else history,
        socratic=Socratic(
            mode="" if asked.mode == "grounded" else asked.mode,
            level=asked.options.level or 1,
            topic=asked.options.topic or "",
        ),
        coach=coach,
        listed=None if catalogue is None else catalogue.documents,
        sessions=None if asked.session is None else service.sessions,
        transcribed=False,
    )
    return await session.reply(asked.question, deadline=loop_ends, question_id=context.query_id)


def _retriever(context: RequestContext) -> Retriever | None:
    """The corpus of a request, if it names one."""

    def note(side: str, fault: Exception) -> None:
        context.degraded[side] = f"{type(fault).__name__}: {fault}"

    return context.service.retriever(context.corpus or "", note)


def supplied(settings: Settings, asked: AskRequest) -> list[Passage]:
    """The passages of the supplied text; a long text is chunked like a document.

    Raises `RequestError` (413) if it exceeds `MOST_CONTEXT`.
    """
    texts = asked.context or ()
    length = sum(len(one.text) for one in texts)
    if length > MOST_CONTEXT:
        raise RequestError(413, "too_large", f"The context has {length} characters; send at most {MOST_CONTEXT}.")
    found: dict[str, Passage] = {}
    for number, one in enumerate(texts, start=1):
        name = one.title.strip() or f"Passage {number}"
        for start, end in spans(one.text, 0, len(one.text), settings.chunk_characters, settings.chunk_overlap):
            piece = one.text[start:end]
            id_ = passage_id(name, piece)
            found.setdefault(id_, Passage(id=id_, doc_id=str(number), title=name, text=piece, span=(start, end)))
    return list(found.values())


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
        while (line := await pending.get()) is not None:
            yield line
        try:
            response = work.result()
            await context.service.record(context, 200)
        except Exception as error:  # noqa: BLE001  # the headers are sent: the client receives an event
            refused = noted(context, error)
            await context.service.record(context, refused.status)
            yield _event("error", envelope(refused, context.request_id))
        else:
            yield _event("text", {"text": response.answer})
            yield _event("answer", response.model_dump(mode="json"))
        yield _event("done", {})
    finally:
        if not work.done():
            context.went()
            work.cancel()
            await asyncio.wait({work})


def _event(name: str, data: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"

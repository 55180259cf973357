"""Answers one question for a client: the loop over a corpus or a supplied text, checked, within the deadline."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...agent.engine import Engine, OnStep
from ...agent.grounded import Checks, GroundedAnswer, checked
from ...conversation.history import History
from ...conversation.memory import bounded
from ...conversation.socratic.coach import CoachReply
from ...errors import InputError, RequestError
from ...grounding.styles import chosen
from ...ingestion.chunkers.characters import spans
from ...llm.ledger import total
from ...prompts import prompt
from ...retrieval.hybrid import HybridRetriever, Retrieval, Retriever
from ...retrieval.passage import Passage, passage_id
from ..inquiry import Inquiry
from ..opening import CONTEXT, Service
from ..schemas import CONTEXT_RESTRICTED, FULL_CORPUS, AskOptions, AskRequest, AskResponse, as_checked
from .deadline import require_verified, within
from .sessions import standalone

METHOD = "service"
"""How ledger rows name what the service asked for."""


async def ask(
    service: Service,
    asked: AskRequest,
    inquiry: Inquiry,
    on_step: OnStep | None = None,
    *,
    history: History | None = None,
) -> AskResponse:
    """Answer within the deadline of the whole request, or raise: nothing half-verified is returned.

    `history` is what was said before, where the client brings it along instead of naming a session.
    Raises `RequestError`, or a `MetaRagError` that `failures.refusal` translates.
    """
    inquiry.question, inquiry.session = asked.question, asked.session
    inquiry.source_mode, inquiry.mode = asked.source_mode, asked.mode
    restricted = asked.source_mode == CONTEXT_RESTRICTED
    inquiry.corpus = None if restricted else asked.corpus or next(iter(service.retrievers))
    service.calls.inquiries[inquiry.query_id] = inquiry
    try:
        deadline = inquiry.arrived + service.budgets.total
        before = None if history is None else bounded(history, service.sessions.limits).history
        loop_ends = deadline - service.budgets.finish
        task = _Task(service=service, asked=asked, inquiry=inquiry, loop_ends=loop_ends, on_step=on_step)
        inquiry.result = await within(_replied(task, before), deadline)
    finally:
        service.calls.inquiries.pop(inquiry.query_id, None)
        service.faults.update(dict.fromkeys(inquiry.degraded, time.monotonic()))
        for call in inquiry.calls:
            inquiry.took(call.row.stage, call.row.latency_s)
    return as_response(inquiry, inquiry.result, asked)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """One question, and the `time.monotonic` moment at which its loop ends."""

    service: Service
    asked: AskRequest
    inquiry: Inquiry
    loop_ends: float
    on_step: OnStep | None


async def _replied(task: _Task, before: History | None) -> GroundedAnswer | CoachReply:
    """The answer, or the coach's question, kept in the session."""
    asked, inquiry = task.asked, task.inquiry
    history = await _before(task.service, inquiry) if before is None else before
    if asked.mode == "coach":
        reply = await _coached(task, history)
        if reply.remembered:
            told = {"question": asked.question, "answer": reply.text, "standalone": asked.question}
            await _remember(task.service, inquiry, **told, mode=reply.kind)
        return reply
    question, result = await _answered(task, history)
    await _remember(
        task.service,
        inquiry,
        question=asked.question,
        answer=result.text,
        standalone=question,
        mode="teacher" if asked.mode == "teacher" else "",
        short_answer=result.short_answer,
    )
    return result


async def _coached(task: _Task, history: History) -> CoachReply:
    return await task.service.coaches.reply(
        task.asked.question,
        inquiry=task.inquiry,
        retriever=_watched(task.service, task.inquiry.corpus or "", task.inquiry),
        level=task.asked.options.level or 1,
        history=history,
        deadline=task.loop_ends,
    )


async def _answered(task: _Task, history: History) -> tuple[str, GroundedAnswer]:
    """The question as it was understood, and its answer."""
    service, asked, inquiry = task.service, task.asked, task.inquiry
    engine = _engine(service.engine, asked.options)
    retriever = None if inquiry.corpus is None else _watched(service, inquiry.corpus, inquiry)
    evidence = None if retriever is not None else supplied(service, asked)
    checks = _checks(service.checks[inquiry.corpus or CONTEXT], asked.options)
    manner = prompt("teacher", engine.settings.prompts_dir).text() if asked.mode == "teacher" else ""
    model = engine.model.session(inquiry.query_id, method=METHOD, deadline=task.loop_ends)
    question = await standalone(asked.question, history, model)
    drafted = await engine.answer(
        question,
        asked=asked.question,
        manner=manner,
        evidence=evidence,
        retriever=retriever,
        grounded=True,
        question_id=inquiry.query_id,
        method=METHOD,
        deadline=task.loop_ends,
        on_step=task.on_step,
    )
    require_verified(drafted)
    started = time.perf_counter()
    result = await checked(engine, drafted, checks, question_id=inquiry.query_id, deadline=task.loop_ends)
    inquiry.took("checks", time.perf_counter() - started)
    return question, result


async def _remember(service: Service, inquiry: Inquiry, **exchange: str) -> None:
    if inquiry.session is not None and inquiry.client is not None:
        await service.sessions.remember(inquiry.client.id, inquiry.session, inquiry.corpus or CONTEXT, **exchange)


async def _before(service: Service, inquiry: Inquiry) -> History:
    if inquiry.session is None or inquiry.client is None:
        return History()
    return await service.sessions.before(inquiry.client.id, inquiry.session, inquiry.corpus or CONTEXT)


def _watched(service: Service, corpus: str, inquiry: Inquiry) -> Retriever:
    retriever = service.retrievers.get(corpus)
    if retriever is None:
        known = ", ".join(service.retrievers)
        raise RequestError(404, "unknown_corpus", f"The corpus {corpus!r} is not served; there are: {known}.")
    return WatchedRetriever.over(retriever, inquiry, side_seconds=service.budgets.retrieval)


def supplied(service: Service, asked: AskRequest) -> list[Passage]:
    """The passages of the text that came along; a long text is cut as documents are.

    Raises `RequestError` (413) where it is longer than SERVICE_CONTEXT_CHARACTERS.
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


def as_response(inquiry: Inquiry, result: GroundedAnswer | CoachReply, asked: AskRequest) -> AskResponse:
    """A checked answer, or a coach's question, as it goes to the client."""
    cost = total(call.row for call in inquiry.calls).cost_usd
    common: dict[str, Any] = {
        "query_id": inquiry.query_id,
        "answer_id": inquiry.answer_id,
        "cost_usd": None if cost is None else float(cost),
        "source_mode": CONTEXT_RESTRICTED if inquiry.corpus is None else FULL_CORPUS,
        "corpus": inquiry.corpus,
        "mode": asked.mode,
        "degraded": sorted(inquiry.degraded),
    }
    if isinstance(result, CoachReply):
        return AskResponse(
            **common,
            answer=result.text,
            short_answer="",
            refused=result.trace.outcome if result.trace.outcome == "out_of_scope" else None,
            citations=[],
            confidence=None,
            level=None,
            rounds=len(result.trace.attempts),
            stop_reason=result.trace.outcome,
        )
    return AskResponse(**common, **as_checked(result))


@dataclass(frozen=True, kw_only=True)
class WatchedRetriever:
    """Tells the inquiry of every search."""

    inquiry: Inquiry
    retriever: Retriever

    @classmethod
    def over(cls, retriever: Retriever, inquiry: Inquiry, *, side_seconds: float) -> "WatchedRetriever":
        """Watch a retriever; of a hybrid one either index may fail or take longer than `side_seconds`."""

        def note(side: str, fault: Exception) -> None:
            inquiry.degraded[side] = f"{type(fault).__name__}: {fault}"

        if isinstance(retriever, HybridRetriever):
            retriever = replace(retriever, side_seconds=side_seconds, on_fault=note)
        return cls(inquiry=inquiry, retriever=retriever)

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        started = time.perf_counter()
        self.inquiry.queries.extend(queries)
        try:
            return await self.retriever.retrieve(queries, k=k, exclude=exclude)
        finally:
            self.inquiry.took("retrieval", time.perf_counter() - started)

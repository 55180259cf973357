"""Answers one question for a client: the loop over a corpus or a supplied text, checked, within the deadline."""

import time
from dataclasses import asdict, replace

from ..agent.engine import Engine, OnStep
from ..agent.grounded import Checks, GroundedAnswer, checked
from ..conversation.history import History
from ..errors import InputError, RequestError
from ..grounding.styles import chosen
from ..ingestion.chunkers.characters import spans
from ..llm.ledger import total
from ..retrieval.hybrid import Retriever
from ..retrieval.passage import Passage, passage_id
from .deadline import require_verified, within
from .inquiry import Inquiry
from .parts import CONTEXT, Service
from .schemas import CONTEXT_RESTRICTED, AskOptions, AskRequest, AskResponse, CitationOut
from .searching import WatchedRetriever
from .sessions import standalone

METHOD = "service"
"""How ledger rows name what the service asked for."""


async def ask(service: Service, asked: AskRequest, inquiry: Inquiry, on_step: OnStep | None = None) -> AskResponse:
    """Answer within the deadline of the whole request, or raise: nothing half-verified is returned.

    Raises `RequestError`, or a `MetaRagError` that `failures.refusal` translates.
    """
    inquiry.question, inquiry.source_mode, inquiry.session = asked.question, asked.source_mode, asked.session
    restricted = asked.source_mode == CONTEXT_RESTRICTED
    inquiry.corpus = None if restricted else asked.corpus or next(iter(service.retrievers))
    service.calls.inquiries[inquiry.query_id] = inquiry
    try:
        deadline = inquiry.arrived + service.budgets.total
        inquiry.result = await within(_answered(service, asked, inquiry, deadline, on_step), deadline)
    finally:
        service.calls.inquiries.pop(inquiry.query_id, None)
        service.faults.update(dict.fromkeys(inquiry.degraded, time.monotonic()))
        for call in inquiry.calls:
            inquiry.took(call.row.stage, call.row.latency_s)
    return as_response(inquiry, inquiry.result)


async def _answered(
    service: Service, asked: AskRequest, inquiry: Inquiry, deadline: float, on_step: OnStep | None
) -> GroundedAnswer:
    engine = _engine(service.engine, asked.options)
    retriever = None if inquiry.corpus is None else _watched(service, inquiry.corpus, inquiry)
    evidence = None if retriever is not None else supplied(service, asked)
    checks = _checks(service.checks[inquiry.corpus or CONTEXT], asked.options)
    loop_ends = deadline - service.budgets.finish
    history = await _before(service, inquiry)
    model = engine.model.session(inquiry.query_id, method=METHOD, deadline=loop_ends)
    question = await standalone(asked.question, history, model)
    drafted = await engine.answer(
        question,
        asked=asked.question,
        evidence=evidence,
        retriever=retriever,
        grounded=True,
        question_id=inquiry.query_id,
        method=METHOD,
        deadline=loop_ends,
        on_step=on_step,
    )
    require_verified(drafted)
    started = time.perf_counter()
    result = await checked(engine, drafted, checks)
    inquiry.took("checks", time.perf_counter() - started)
    if asked.session is not None and inquiry.client is not None:
        longer = history.with_exchange(question=asked.question, answer=result.text, standalone=question)
        await service.sessions.remember(inquiry.client.id, asked.session, inquiry.corpus or CONTEXT, longer)
    return result


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


def as_response(inquiry: Inquiry, result: GroundedAnswer) -> AskResponse:
    """A checked answer as it goes to the client."""
    sure, cost = result.confidence, total(call.row for call in inquiry.calls).cost_usd
    return AskResponse(
        query_id=inquiry.query_id,
        answer_id=inquiry.answer_id,
        answer=result.text,
        short_answer=result.short_answer,
        refused=result.refused,
        citations=[CitationOut.model_validate(asdict(citation)) for citation in result.citations],
        confidence=None if sure is None else sure.score,
        level=None if sure is None else sure.level,
        rounds=len(result.answer.rounds),
        stop_reason=result.answer.stop_reason,
        cost_usd=None if cost is None else float(cost),
        source_mode=CONTEXT_RESTRICTED if inquiry.corpus is None else "full-corpus",
        corpus=inquiry.corpus,
        degraded=sorted(inquiry.degraded),
    )

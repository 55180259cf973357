"""Summarises documents for a client: bounded before the first call, recorded, and within the deadline."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, replace

from ..chat.summaries import EVERY, Overview, SectionPoints, Work, prepared, summary_text
from ..errors import InputError, ModelError, RequestError, TooManyCallsError
from ..llm.ledger import total
from ..retrieval.hybrid import HybridRetriever
from .answers import in_time
from .failures import timed_out
from .request_record import Summarised, SummaryStopReason
from .resources import RequestContext
from .schemas import FULL_CORPUS, CitationOut, EstimateOut, SummaryRequest, SummaryResponse, SummarySource

MOST_SECTIONS = 8
_LATE = "The summary was not ready by the deadline; name fewer documents."


async def summarise(asked: SummaryRequest, context: RequestContext) -> SummaryResponse:
    """Summarise within the deadline of the whole request, or raise. Sections that fail or are late are reported.

    Raises `RequestError`, or a `MetaRagError` that `failures.refusal` translates.
    """
    context.question = f"Summarise {', '.join(asked.documents or ('all documents',))}"
    context.source_mode, context.mode = FULL_CORPUS, "summary"
    context.corpus = context.client.corpus(asked.corpus, context.service.retrievers)
    context.result = result = await in_time(_result(asked, context), context, _LATE)
    return _as_response(context, result)


async def _result(asked: SummaryRequest, context: RequestContext) -> Summarised:
    """The summary, from the sections whose calls ended in time. Raises the error of the calls if all failed."""
    work = await _prepared(asked, context)
    if asked.dry_run:
        return Summarised(work=work)
    ends = context.deadline - context.service.budgets.finish
    summary = await work.done(question_id=context.query_id, deadline=ends)
    sections = [section for one in summary.overviews for section in one.sections]
    failed = [section for section in sections if section.failure]
    late = any(section.late for section in failed)
    if failed:
        context.message = f"{len(failed)} of {len(sections)} sections failed: {failed[0].failure}"[:1000]
    if failed and len(failed) == len(sections):
        raise timed_out(_LATE) if late else ModelError(failed[0].failure)
    shown = replace(summary, overviews=tuple(_for_a_client(one) for one in summary.overviews))
    reason: SummaryStopReason = "complete" if not failed else "deadline" if late else "incomplete"
    return Summarised(work=work, summary=summary, text=summary_text(shown), stop_reason=reason)


async def _prepared(asked: SummaryRequest, context: RequestContext) -> Work:
    """The documents in sections. Raises `RequestError` if one is unknown, or if there are too many sections."""
    service, corpus = context.service, context.corpus or ""
    retriever, settings = service.retrievers[corpus], service.settings
    most = min(MOST_SECTIONS, settings.overview_calls)
    library = retriever.corpus.catalogue if isinstance(retriever, HybridRetriever) else None
    if library is None or not (await asyncio.to_thread(library.counts))[0]:
        raise RequestError(404, "unknown_document", f"The corpus {corpus!r} has no documents to summarise.")
    try:
        return await prepared(service.engine.model, library, asked.documents or (EVERY,), sections=most)
    except TooManyCallsError:
        raise RequestError(
            422,
            "too_many_sections",
            f"The summary needs more than {most} model calls, one for each section, which is the limit; "
            "name fewer documents, or ask the service's operator to summarise them.",
        ) from None
    except InputError as error:
        raise RequestError(404, "unknown_document", str(error)) from None


def _for_a_client(overview: Overview) -> Overview:
    """The overview without the words of failures, which may contain paths and addresses."""

    def worded(section: SectionPoints) -> SectionPoints:
        words = "the deadline passed; name fewer documents." if section.late else "the language model did not answer."
        return replace(section, failure=section.failure and words)

    return replace(overview, sections=tuple(map(worded, overview.sections)))


def _as_response(context: RequestContext, result: Summarised) -> SummaryResponse:
    estimate, cost = result.work.estimate, total(call.row for call in context.calls).cost_usd
    citations = () if result.summary is None else result.summary.citations
    return SummaryResponse(
        query_id=context.query_id,
        answer_id=context.answer_id,
        corpus=context.corpus or "",
        dry_run=result.summary is None,
        estimate=EstimateOut(
            calls=estimate.calls,
            prompt_tokens=estimate.prompt_tokens,
            max_cost_usd=None if estimate.usd is None else float(estimate.usd),
        ),
        summary=result.text,
        complete=result.stop_reason == "complete",
        citations=[CitationOut.model_validate(asdict(citation)) for citation in citations],
        sources=list(_sources(result)),
        calls=len(context.calls),
        cost_usd=None if cost is None else float(cost),
    )


def _sources(result: Summarised) -> Iterator[SummarySource]:
    overviews = () if result.summary is None else result.summary.overviews
    failed = {one.document.id: sum(bool(section.failure) for section in one.sections) for one in overviews}
    for one in result.work.documents:
        yield SummarySource(
            doc_id=one.document.id,
            title=one.document.title,
            sections=len(one.sections),
            failed=failed.get(one.document.id, 0),
            left_out=one.left_out,
        )

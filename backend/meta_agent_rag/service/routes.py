"""The addresses of the service: all of `/v1/` requires a key, the rest reveals nothing about clients."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import StreamingResponse
from starlette.routing import compile_path

from ..errors import RequestError
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import HybridRetriever, Retriever
from .answers import ask, events
from .database import UPLOADS, within
from .openai import ChatCompletion, ChatRequest, FaultEnvelope, Model, Models, chunks, complete, models
from .resources import RequestContext
from .schemas import (
    AskRequest,
    AskResponse,
    Corpora,
    CorpusDocumentOut,
    CorpusDocumentsOut,
    CorpusOut,
    DocumentOut,
    DocumentsOut,
    ErrorEnvelope,
    Health,
    QueryRecord,
    Readiness,
    RemovedOut,
    SummaryRequest,
    SummaryResponse,
)
from .summaries import summarise
from .uploads import FIELD, MOST_FILES, Upload

Responses = dict[int | str, dict[str, Any]]
QUESTIONS = frozenset({"/v1/ask", "/v1/ask/stream", "/v1/chat/completions", "/v1/summaries"})
"""Each response to a known client at these addresses gets an audit row."""
UPLOAD = "/v1/documents"
"""The body of a POST to this address is written to disk as it arrives."""
_SAID: Mapping[int, str] = {
    400: "The body cannot be read.",
    401: "The key is missing or invalid.",
    403: "The key lacks the scope.",
    404: "Nothing with this name exists.",
    408: "The body came too slowly.",
    409: "The corpus does not accept documents, or the document cannot be deleted now.",
    413: "The body, or a part of it, is too large.",
    415: "Unsupported file format.",
    422: "The request is invalid; the message says what to change.",
    429: "Too many requests per minute, too many wrong keys, or the key's daily cap is reached.",
    503: "The service is overloaded, or a component is down.",
    504: "The deadline passed; nothing half-verified is returned.",
}
_ASKED = (400, 401, 403, 404, 413, 422, 429, 503, 504)
_READ = (401, 413, 429, 503, 504)
_HEAD = ("query_id", "answer_id", "request_id", "at", "endpoint", "status", "success", "error")
_MOST_SHOWN = 80
_EVENT_STREAM = "text/event-stream"
_EVENTS: Mapping[str, Any] = {
    "itemSchema": {
        "type": "object",
        "required": ["data"],
        "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    }
}
_UNBUFFERED = {"x-accel-buffering": "no"}
_KINDS = (
    "text/plain, text/markdown, text/html, application/pdf, application/x-ndjson, "
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
)
_FILE_LIST = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_FILES,
    "items": {"type": "string", "format": "binary"},
}
_FILES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "encoding": {FIELD: {"contentType": _KINDS}},
                "schema": {
                    "type": "object",
                    "required": [FIELD],
                    "additionalProperties": False,
                    "properties": {FIELD: _FILE_LIST},
                },
            }
        },
    }
}


def refusals(*codes: int) -> Responses:
    """The descriptions of these refusals in the OpenAPI document."""
    return {code: {"model": ErrorEnvelope, "description": _SAID[code]} for code in codes}


def current(request: Request) -> RequestContext:
    """The request as known to the gate."""
    context: RequestContext = request.state.context
    return context


Context = Annotated[RequestContext, Depends(current)]


async def asking(context: Context) -> RequestContext:
    """A request whose key may ask and has not reached its daily cap."""
    context.client.require("ask")
    await context.service.require_affordable(context.client)
    return context


def ingesting(context: Context) -> RequestContext:
    """A request whose key may send documents."""
    context.client.require("ingest")
    return context


def removing(context: Context) -> RequestContext:
    """A request whose key may remove documents: an administrator's, or its own documents'."""
    context.client.require("ingest" if "ingest" in context.client.scopes else "admin")
    return context


Asking = Annotated[RequestContext, Depends(asking)]
Ingesting = Annotated[RequestContext, Depends(ingesting)]
Removing = Annotated[RequestContext, Depends(removing)]
Id = Annotated[str, Path(json_schema_extra={"pattern": "^[0-9a-f]{32}$"})]
"""The id of an upload or a record. Its form is documented but not required: any other text is an unknown id."""
Limit = Annotated[int, Query(ge=1, le=1000, description="Number of documents.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="Number of documents to skip.")]
CorpusPath = Annotated[str, Path(max_length=64, description="A corpus, as GET /v1/corpora names it.")]
DocumentPath = Annotated[str, Path(max_length=300, description="A `doc_id`, as in citations.")]
_KEYED: list[Any] = [Depends(HTTPBearer(auto_error=False, description="A key from `marag keys create`."))]
keyed = APIRouter(dependencies=_KEYED)
openai = APIRouter(
    tags=["openai"],
    dependencies=_KEYED,
    responses={"default": {"model": FaultEnvelope, "description": "Refused, in the form of OpenAI's API."}},
)
operation = APIRouter(tags=["operation"])


@keyed.post("/v1/ask", tags=["ask"], response_model=AskResponse, responses=refusals(*_ASKED))
async def post_ask(asked: AskRequest, context: Asking) -> AskResponse:
    """Answer a question from documents: checked, cited, or refused with what to try, within the deadline."""
    return await ask(asked, context)


@keyed.post(
    "/v1/ask/stream",
    tags=["ask"],
    response_class=StreamingResponse,
    responses={
        200: {"content": {_EVENT_STREAM: dict(_EVENTS)}, "description": "Server-sent events."},
        **refusals(*_ASKED),
    },
)
async def post_ask_stream(asked: AskRequest, context: Asking) -> Response:
    """The same as a stream: `stage` events, then `text` (verified), `answer` or `error`, and `done`."""
    context.streams = True
    return StreamingResponse(events(asked, context), media_type=_EVENT_STREAM, headers=_UNBUFFERED)


@openai.get("/v1/models", response_model=Models)
async def get_models(context: Context) -> Models:
    """All served corpora as models."""
    return models(context.client.allowed(context.service.retrievers))


@openai.get("/v1/models/{model}", response_model=Model)
async def get_model(model: Annotated[str, Path(max_length=64)], context: Context) -> Model:
    """One model."""
    return models([context.client.corpus(model, context.service.retrievers)]).data[0]


@openai.post(
    "/v1/chat/completions",
    response_model=ChatCompletion,
    responses={
        200: {
            "content": {_EVENT_STREAM: dict(_EVENTS)},
            "description": "The completion, or with `stream` its chunks and `data: [DONE]`.",
        }
    },
)
async def post_completion(chat: ChatRequest, context: Asking) -> ChatCompletion | Response:
    """Answer the last message from the documents of the corpus that `model` names, as `/v1/ask` does."""
    done = await complete(chat, context)
    if not chat.stream:
        return done
    with_usage = chat.stream_options is not None and chat.stream_options.include_usage
    return StreamingResponse(chunks(done, with_usage=with_usage), media_type=_EVENT_STREAM, headers=_UNBUFFERED)


@keyed.post("/v1/summaries", tags=["summaries"], response_model=SummaryResponse, responses=refusals(*_ASKED))
async def post_summaries(asked: SummaryRequest, context: Asking) -> SummaryResponse:
    """Summarise documents with one call per section: every point cited, within the deadline."""
    return await summarise(asked, context)


@keyed.get("/v1/corpora", tags=["corpora"], response_model=Corpora, responses=refusals(*_READ))
async def get_corpora(context: Context) -> Corpora:
    """The corpora that this key can ask."""
    served = context.service.retrievers
    found = [await asyncio.to_thread(_corpus, name, served[name]) for name in context.client.allowed(served)]
    return Corpora(corpora=found)


@keyed.get(
    "/v1/corpora/{name}/documents",
    tags=["corpora"],
    response_model=CorpusDocumentsOut,
    responses=refusals(*_READ, 404, 422),
)
async def get_corpus_documents(
    name: CorpusPath, context: Context, limit: Limit = 100, offset: Offset = 0
) -> CorpusDocumentsOut:
    """The documents of a corpus, ordered by file, for a key of any scope."""
    found = await context.service.uploads.documents(context.client.corpus(name, context.service.retrievers))
    return CorpusDocumentsOut(documents=[CorpusDocumentOut.of(one) for one in found[offset : offset + limit]])


@keyed.get(
    "/v1/corpora/{name}/documents/{doc_id}",
    tags=["corpora"],
    response_model=CorpusDocumentOut,
    responses=refusals(*_READ, 404, 422),
)
async def get_corpus_document(name: CorpusPath, doc_id: DocumentPath, context: Context) -> CorpusDocumentOut:
    """One document of a corpus, by the `doc_id` of a citation."""
    corpus = context.client.corpus(name, context.service.retrievers)
    for document in await context.service.uploads.documents(corpus):
        if document.id == doc_id:
            return CorpusDocumentOut.of(document)
    words = f"The corpus {name!r} has no document {doc_id!r}; GET /v1/corpora/{name}/documents lists all."
    raise RequestError(404, "not_found", words)


@keyed.delete(
    "/v1/corpora/{name}/documents/{doc_id}",
    tags=["corpora"],
    response_model=RemovedOut,
    responses=refusals(*_READ, 403, 404, 409, 422),
)
async def delete_corpus_document(name: CorpusPath, doc_id: DocumentPath, context: Removing) -> RemovedOut:
    """Remove a document from a corpus: any with the scope `admin`, one that this key sent with `ingest`.

    A document that does not exist is not an error.
    """
    service = context.service
    removed = await service.uploads.drop(name, doc_id, context.client, service.budgets.retrieval)
    return RemovedOut(doc_id=doc_id, removed=removed)


@keyed.post(
    UPLOAD,
    tags=["documents"],
    status_code=202,
    response_model=DocumentsOut,
    responses=refusals(401, 403, 404, 408, 409, 413, 415, 422, 429, 503),
    openapi_extra=_FILES,
)
async def post_documents(
    request: Request,
    context: Ingesting,
    corpus: Annotated[
        str | None, Query(min_length=1, max_length=64, description="Default: the first one served.")
    ] = None,
) -> DocumentsOut:
    """Add files to a corpus: they are read in the background, one after the other; poll each for its state.

    A file replaces what the same key sent to the corpus under its name, never a document of another key or of the
    operator; the same file sent again keeps its id.
    """
    uploads = await context.service.uploads.accept(request, context.client, corpus)
    return DocumentsOut(documents=await _documents(context, uploads))


@keyed.get(UPLOAD, tags=["documents"], response_model=DocumentsOut, responses=refusals(*_READ, 403, 422))
async def get_documents(context: Ingesting, limit: Limit = 100, offset: Offset = 0) -> DocumentsOut:
    """The documents that this key sent and has not deleted, the latest first."""
    own = (UPLOADS.c.client_id == context.client.id) & (UPLOADS.c.state != "deleted")
    sent = (await context.service.uploads.select(own))[::-1]
    return DocumentsOut(documents=await _documents(context, sent[offset : offset + limit]))


@keyed.get(
    "/v1/documents/{document_id}",
    tags=["documents"],
    response_model=DocumentOut,
    responses=refusals(*_READ, 403, 404),
)
async def get_document(document_id: Id, context: Ingesting) -> DocumentOut:
    """The state of a document that this key sent."""
    return (await _documents(context, [await _upload(context, document_id)]))[0]


@keyed.delete(
    "/v1/documents/{document_id}",
    tags=["documents"],
    response_model=DocumentOut,
    responses=refusals(*_READ, 403, 404, 409),
)
async def delete_document(document_id: Id, context: Ingesting) -> DocumentOut:
    """Remove a document that this key sent from its corpus. Deleting it again has no effect."""
    upload = await _upload(context, document_id)
    gone = await context.service.uploads.delete(upload, context.service.budgets.retrieval)
    return (await _documents(context, [gone]))[0]


@keyed.get("/v1/queries/{query_id}", tags=["audit"], response_model=QueryRecord, responses=refusals(*_READ, 404))
async def get_query(query_id: Id, context: Context) -> QueryRecord:
    """The record of one of this key's own questions."""
    service, fields = context.service, None
    try:
        if _is_id(query_id):
            fields = await within(service.audit.read(query_id, context.client.id), service.budgets.database)
    except (SQLAlchemyError, OSError):
        raise RequestError(503, "unavailable", "Records cannot be read at the moment; try again later.") from None
    if fields is None:
        raise RequestError(404, "not_found", f"This key has no record {query_id[:_MOST_SHOWN]!r}; check the id.")
    fields.pop("message")  # error texts may contain paths and addresses; they stay in the record and the log
    fields["degraded"] = sorted(fields["degraded"])
    return QueryRecord(**{name: fields.pop(name) for name in _HEAD}, record=fields)


@operation.get("/healthz", response_model=Health)
async def healthz() -> Health:
    """The process is running."""
    return Health()


@operation.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
async def readyz(context: Context, response: Response) -> Readiness:
    """Whether questions can be answered, and what is degraded."""
    service = context.service
    unwritable, faults = await service.unwritable(), service.degraded()
    down = bool(unwritable) or {"dense", "lexical"} <= set(faults)
    degraded = sorted([*faults, *unwritable])
    response.status_code = 503 if down else 200
    return Readiness(
        status="unready" if down else "degraded" if degraded else "ready",
        corpora=list(service.retrievers),
        degraded=degraded,
        audit_waiting=service.audit.waiting,
    )


@operation.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus's text format."},
        **refusals(*_READ, 403),
    },
    dependencies=_KEYED,
)
async def get_metrics(context: Context) -> Response:
    """Metrics of this process, for a key with the scope `admin`."""
    service = context.service
    context.client.require("admin")
    return Response(service.metrics.text(audit_waiting=service.audit.waiting), media_type=CONTENT_TYPE_LATEST)


router = APIRouter()
for _part in (keyed, openai, operation):
    router.include_router(_part)
_ROUTES = [route for part in (keyed, openai, operation) for route in part.routes if isinstance(route, APIRoute)]
_PATTERNS = tuple((compile_path(route.path)[0], route.path) for route in _ROUTES)


def methods_at(path: str) -> list[str]:
    """The methods of all routes that a path matches."""
    return sorted({method for route in _ROUTES if route.path_regex.match(path) for method in route.methods or ()})


def endpoint_of(path: str) -> str:
    """The route that a path matches, or `other`: paths made up by a client must not become labels.

    >>> endpoint_of("/v1/queries/0a")
    '/v1/queries/{query_id}'
    """
    return next((address for pattern, address in _PATTERNS if pattern.match(path)), "other")


def _is_id(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{32}", text) is not None


async def _upload(context: RequestContext, id_: str) -> Upload:
    found = await context.service.uploads.get(id_, context.client) if _is_id(id_) else None
    if found is None:
        others = "check the id; GET /v1/corpora/NAME/documents lists all documents of a corpus by doc_id"
        raise RequestError(404, "not_found", f"This key sent no document {id_[:_MOST_SHOWN]!r}; {others}.")
    return found


async def _documents(context: RequestContext, uploads: Sequence[Upload]) -> list[DocumentOut]:
    """Uploads with the id and title of their documents."""
    known: dict[str, DocumentRecord] = {}
    service = context.service
    for corpus in {upload.corpus for upload in uploads if upload.state == "indexed"} & set(service.retrievers):
        known |= {document.source: document for document in await service.uploads.documents(corpus)}
    shown = []
    for upload in uploads:
        document = known.get(service.uploads.source(upload)) if upload.state == "indexed" else None
        shown.append(
            DocumentOut(
                id=upload.id,
                name=upload.name,
                corpus=upload.corpus,
                state=upload.state,
                message=upload.message,
                passages=upload.passages,
                doc_id=None if document is None else document.id,
                title=None if document is None else document.title,
            )
        )
    return shown


def _corpus(name: str, retriever: Retriever) -> CorpusOut:
    if not isinstance(retriever, HybridRetriever):
        return CorpusOut(name=name, documents=None, passages=None, takes_documents=False)
    documents, passages = retriever.corpus.catalogue.counts()
    return CorpusOut(name=name, documents=documents, passages=passages, takes_documents=name != SAMPLE)

"""The addresses of the service: all of `/v1/` requires a key, the rest reveals nothing about clients."""

import asyncio
from collections.abc import Sequence
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
from .answers import ask, events
from .database import UPLOADS, within
from .openai import ChatRequest, chunks, complete, model
from .request import RequestContext
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
    QueryRecord,
    Readiness,
    RemovedOut,
)
from .uploads import FIELD, MOST_FILES, Upload

QUESTIONS = frozenset({"/v1/ask", "/v1/ask/stream", "/v1/chat/completions"})
"""Each response to a known client at these addresses gets an audit row."""
UPLOAD = "/v1/documents"
"""The body of a POST to this address is written to disk as it arrives."""
_HEAD = ("query_id", "answer_id", "request_id", "at", "endpoint", "status", "success", "error")
_EVENT_STREAM = "text/event-stream"
_UNBUFFERED = {"x-accel-buffering": "no"}
_FILES = {"type": "array", "minItems": 1, "maxItems": MOST_FILES, "items": {"type": "string", "format": "binary"}}
_BODY = {"type": "object", "required": [FIELD], "additionalProperties": False, "properties": {FIELD: _FILES}}
_UPLOADED = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _BODY}}}}


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
Limit = Annotated[int, Query(ge=1, le=1000, description="Number of documents.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="Number of documents to skip.")]
CorpusPath = Annotated[str, Path(max_length=64, description="A corpus, as GET /v1/corpora names it.")]
DocumentPath = Annotated[str, Path(max_length=300, description="A `doc_id`, as in citations.")]
_KEYED: list[Any] = [Depends(HTTPBearer(auto_error=False, description="A key from `marag keys create`."))]
keyed = APIRouter(
    dependencies=_KEYED,
    responses={"default": {"model": ErrorEnvelope, "description": "Refused; the message says why and what to do."}},
)
openai = APIRouter(
    tags=["openai"],
    dependencies=_KEYED,
    responses={"default": {"description": "Refused, in the form of OpenAI's API."}},
)
operation = APIRouter(tags=["operation"])


@keyed.post("/v1/ask", tags=["ask"])
async def post_ask(asked: AskRequest, context: Asking) -> AskResponse:
    """Answer a question from documents: checked, cited, or refused with what to try, within the deadline."""
    return await ask(asked, context)


@keyed.post(
    "/v1/ask/stream",
    tags=["ask"],
    response_class=StreamingResponse,
    responses={200: {"content": {_EVENT_STREAM: {}}, "description": "Server-sent events."}},
)
async def post_ask_stream(asked: AskRequest, context: Asking) -> Response:
    """The same as a stream: `stage` events, then `text` (verified), `answer` or `error`, and `done`."""
    context.streams = True
    return StreamingResponse(events(asked, context), media_type=_EVENT_STREAM, headers=_UNBUFFERED)


@openai.get("/v1/models")
async def get_models(context: Context) -> dict[str, Any]:
    """All served corpora as models."""
    return {"object": "list", "data": [model(name) for name in context.client.allowed(context.service.retrievers)]}


@openai.get("/v1/models/{name}")
async def get_model(name: Annotated[str, Path(max_length=64)], context: Context) -> dict[str, Any]:
    """One model."""
    return model(context.client.corpus(name, context.service.retrievers))


@openai.post(
    "/v1/chat/completions",
    response_model=dict[str, Any],
    responses={
        200: {
            "content": {_EVENT_STREAM: {}},
            "description": "A completion in OpenAI's form, with the fields of /v1/ask as `grounding`; with `stream` "
            "its chunks and `data: [DONE]`.",
        }
    },
)
async def post_completion(chat: ChatRequest, context: Asking) -> Any:
    """Answer the last message from the documents of the corpus that `model` names, as `/v1/ask` does."""
    done = await complete(chat, context)
    if not chat.stream:
        return done
    with_usage = chat.stream_options is not None and chat.stream_options.include_usage
    return StreamingResponse(chunks(done, with_usage=with_usage), media_type=_EVENT_STREAM, headers=_UNBUFFERED)


@keyed.get("/v1/corpora", tags=["corpora"])
async def get_corpora(context: Context) -> Corpora:
    """The corpora that this key can ask."""
    found = []
    for name in context.client.allowed(context.service.retrievers):
        catalogue = context.service.catalogue(name)
        if catalogue is None:
            found.append(CorpusOut(name=name))
            continue
        documents, passages = await asyncio.to_thread(catalogue.counts)
        found.append(CorpusOut(name=name, documents=documents, passages=passages, takes_documents=name != SAMPLE))
    return Corpora(corpora=found)


@keyed.get("/v1/corpora/{name}/documents", tags=["corpora"])
async def get_corpus_documents(
    name: CorpusPath, context: Context, limit: Limit = 100, offset: Offset = 0
) -> CorpusDocumentsOut:
    """The documents of a corpus, ordered by file, for a key of any scope."""
    found = await context.service.uploads.documents(context.client.corpus(name, context.service.retrievers))
    return CorpusDocumentsOut(documents=[CorpusDocumentOut.of(one) for one in found[offset : offset + limit]])


@keyed.delete("/v1/corpora/{name}/documents/{doc_id}", tags=["corpora"])
async def delete_corpus_document(name: CorpusPath, doc_id: DocumentPath, context: Removing) -> RemovedOut:
    """Remove a document from a corpus: any with the scope `admin`, one that this key sent with `ingest`.

    A document that does not exist is not an error.
    """
    service = context.service
    removed = await service.uploads.drop(name, doc_id, context.client, service.budgets.retrieval)
    return RemovedOut(doc_id=doc_id, removed=removed)


@keyed.post(UPLOAD, tags=["documents"], status_code=202, openapi_extra=_UPLOADED)
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


@keyed.get(UPLOAD, tags=["documents"])
async def get_documents(context: Ingesting, limit: Limit = 100, offset: Offset = 0) -> DocumentsOut:
    """The documents that this key sent and has not deleted, the latest first."""
    own = (UPLOADS.c.client_id == context.client.id) & (UPLOADS.c.state != "deleted")
    sent = (await context.service.uploads.select(own))[::-1]
    return DocumentsOut(documents=await _documents(context, sent[offset : offset + limit]))


@keyed.get("/v1/documents/{document_id}", tags=["documents"])
async def get_document(document_id: str, context: Ingesting) -> DocumentOut:
    """The state of a document that this key sent."""
    return (await _documents(context, [await _upload(context, document_id)]))[0]


@keyed.delete("/v1/documents/{document_id}", tags=["documents"])
async def delete_document(document_id: str, context: Ingesting) -> DocumentOut:
    """Remove a document that this key sent from its corpus. Deleting it again has no effect."""
    upload = await _upload(context, document_id)
    gone = await context.service.uploads.delete(upload, context.service.budgets.retrieval)
    return (await _documents(context, [gone]))[0]


@keyed.get("/v1/queries/{query_id}", tags=["audit"])
async def get_query(query_id: str, context: Context) -> QueryRecord:
    """The record of one of this key's own questions."""
    service = context.service
    try:
        fields = await within(service.audit.read(query_id, context.client.id), service.budgets.database)
    except (SQLAlchemyError, OSError):
        raise RequestError(503, "unavailable", "Records cannot be read at the moment; try again later.") from None
    if fields is None:
        raise RequestError(404, "not_found", f"This key has no record {query_id[:80]!r}; check the id.")
    fields.pop("message")  # error texts may contain paths and addresses; they stay in the record and the log
    fields["degraded"] = sorted(fields["degraded"])
    return QueryRecord(**{name: fields.pop(name) for name in _HEAD}, record=fields)


@operation.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process is running."""
    return {"status": "ok"}


@operation.get("/readyz", responses={503: {"model": Readiness}})
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


@keyed.get(
    "/metrics",
    tags=["operation"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Prometheus's text format."}},
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


async def _upload(context: RequestContext, id_: str) -> Upload:
    found = await context.service.uploads.select(UPLOADS.c.id == id_, UPLOADS.c.client_id == context.client.id)
    if not found:
        others = "check the id; GET /v1/corpora/NAME/documents lists all documents of a corpus by doc_id"
        raise RequestError(404, "not_found", f"This key sent no document {id_[:80]!r}; {others}.")
    return found[0]


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

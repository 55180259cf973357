"""The addresses of the service: all of `/v1/` requires a key, the rest reveals nothing about clients."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Path, Query, Request, Response
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import StreamingResponse

from ..errors import RequestError
from ..retrieval.corpus.sample import SAMPLE
from .answers import ask, events
from .database import UPLOADS, looked_up
from .metrics import REGISTRY
from .openai import ChatRequest, chunks, complete
from .request import RequestContext
from .schemas import (
    AskRequest,
    AskResponse,
    Corpora,
    CorpusDocumentsOut,
    CorpusOut,
    DocumentOut,
    DocumentsOut,
    ErrorEnvelope,
    Readiness,
    UploadForm,
)
from .uploads import Upload

QUESTIONS = frozenset({"/v1/ask", "/v1/ask/stream", "/v1/chat/completions"})
"""Each response to a known client at these addresses gets an audit row."""
UPLOAD = "/v1/documents"
_EVENT_STREAM = "text/event-stream"
_UNBUFFERED = {"x-accel-buffering": "no"}


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
    """A request whose key may send documents, or manage those of all keys."""
    if "admin" not in context.client.scopes:
        context.client.require("ingest")
    return context


Asking = Annotated[RequestContext, Depends(asking)]
Ingesting = Annotated[RequestContext, Depends(ingesting)]
Limit = Annotated[int, Query(ge=1, le=1000, description="Number of documents.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="Number of documents to skip.")]
CorpusPath = Annotated[str, Path(max_length=64, description="A corpus, as GET /v1/corpora names it.")]
CorpusQuery = Annotated[str | None, Query(min_length=1, max_length=64, description="Default: the first one served.")]
keyed = APIRouter(
    dependencies=[Depends(HTTPBearer(auto_error=False, description="A key from `marag keys create`."))],
    responses={"default": {"model": ErrorEnvelope, "description": "Refused; the message says why and what to do."}},
)
operation = APIRouter(tags=["operation"])


@keyed.post("/v1/ask", tags=["ask"])
async def post_ask(asked: AskRequest, context: Asking) -> AskResponse:
    """Answer a question from documents: checked, cited, or refused with what to try, within the deadline."""
    return await ask(asked, context)


@keyed.post("/v1/ask/stream", tags=["ask"], response_class=StreamingResponse)
async def post_ask_stream(asked: AskRequest, context: Asking) -> Response:
    """The same as a stream: `stage` events, then `text` (verified), `answer` or `error`, and `done`."""
    context.streams = True
    return StreamingResponse(events(asked, context), media_type=_EVENT_STREAM, headers=_UNBUFFERED)


@keyed.get("/v1/models", tags=["openai"])
async def get_models(context: Context) -> dict[str, Any]:
    """All served corpora as models."""
    names = context.client.allowed(context.service.retrievers)
    about = {"object": "model", "created": 0, "owned_by": "meta-agent-rag"}
    return {"object": "list", "data": [{"id": name, **about} for name in names]}


@keyed.post("/v1/chat/completions", tags=["openai"], response_model=dict[str, Any])
async def post_completion(chat: ChatRequest, context: Asking) -> Any:
    """Answer the last message from the documents of the corpus that `model` names, as `/v1/ask` does.

    A completion in OpenAI's form, with the fields of /v1/ask as `grounding`; with `stream`, its chunks.
    """
    done = await complete(chat, context)
    if not chat.stream:
        return done
    return StreamingResponse(chunks(done), media_type=_EVENT_STREAM, headers=_UNBUFFERED)


@keyed.get("/v1/corpora", tags=["corpora"])
async def get_corpora(context: Context) -> Corpora:
    """The corpora that this key can ask."""
    service = context.service
    takers = [name for name in service.retrievers if name != SAMPLE and service.catalogue(name) is not None]
    names = context.client.allowed(service.retrievers)
    return Corpora(corpora=[CorpusOut(name=name, takes_documents=name in takers) for name in names])


@keyed.get("/v1/corpora/{name}/documents", tags=["corpora"])
async def get_corpus_documents(
    name: CorpusPath, context: Context, limit: Limit = 100, offset: Offset = 0
) -> CorpusDocumentsOut:
    """The documents of a corpus, ordered by file, for a key of any scope."""
    found = await context.service.uploads.documents(context.client.corpus(name, context.service.retrievers))
    shown = list(found.values())[offset : offset + limit]
    return CorpusDocumentsOut.model_validate({"documents": shown}, from_attributes=True)


@keyed.post(UPLOAD, tags=["documents"], status_code=202)
async def post_documents(
    sent: Annotated[UploadForm, Form(media_type="multipart/form-data")], context: Ingesting, corpus: CorpusQuery = None
) -> DocumentsOut:
    """Add files to a corpus: they are read in the background; poll each for its state.

    A file replaces what the same key sent to the corpus under its name, and keeps that id; documents of another key
    or of the operator are never replaced.
    """
    return _shown(await context.service.uploads.accept(sent.files, context.client, corpus))


@keyed.get(UPLOAD, tags=["documents"])
async def get_documents(context: Ingesting, limit: Limit = 100, offset: Offset = 0) -> DocumentsOut:
    """The documents that this key sent, the latest first; with the scope `admin`, those of all keys."""
    return _shown((await _visible(context))[::-1][offset : offset + limit])


@keyed.get("/v1/documents/{document_id}", tags=["documents"])
async def get_document(document_id: str, context: Ingesting) -> DocumentOut:
    """The state of a document that this key sent; with the scope `admin`, of any."""
    return _shown([await _upload(context, document_id)]).documents[0]


@keyed.delete("/v1/documents/{document_id}", tags=["documents"], status_code=204)
async def delete_document(document_id: str, context: Ingesting) -> None:
    """Remove a document that this key sent from its corpus; with the scope `admin`, any."""
    upload = await _upload(context, document_id)
    await context.service.uploads.delete(upload, context.service.search_seconds)


@keyed.get("/v1/queries/{query_id}", tags=["audit"])
async def get_query(query_id: str, context: Context) -> dict[str, Any]:
    """The record of one of this key's own questions."""
    service = context.service
    fields = await looked_up(service.audit.read(query_id, context.client.id), service.database_seconds)
    if fields is None:
        raise RequestError(404, "not_found", f"This key has no record {query_id[:80]!r}; check the id.")
    fields.pop("message")  # error texts may contain paths and addresses; they stay in the record and the log
    fields["degraded"] = sorted(fields["degraded"])  # nor does it tell what the indexes said
    return {"query_id": query_id, "record": fields}


@operation.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process is running."""
    return {"status": "ok"}


@operation.get("/readyz", responses={503: {"model": Readiness}})
async def readyz(context: Context, response: Response) -> Readiness:
    """Whether questions can be answered, and what is degraded."""
    degraded, able = await context.service.condition()
    response.status_code = 200 if able else 503
    return Readiness(
        status="unready" if not able else "degraded" if degraded else "ready",
        corpora=list(context.service.retrievers),
        degraded=degraded,
    )


@keyed.get("/metrics", tags=["operation"], response_class=Response)
async def get_metrics(context: Context) -> Response:
    """Prometheus metrics of this process, for a key with the scope `admin`."""
    context.client.require("admin")
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)


def _shown(uploads: list[Upload]) -> DocumentsOut:
    return DocumentsOut.model_validate({"documents": uploads}, from_attributes=True)


async def _visible(context: RequestContext) -> list[Upload]:
    """The uploads of a key, or of all keys for an administrator, in the corpora that it may use."""
    allowed = UPLOADS.c.corpus.in_(context.client.allowed(context.service.retrievers))
    own = [] if "admin" in context.client.scopes else [UPLOADS.c.client_id == context.client.id]
    return await context.service.uploads.select(allowed, *own)


async def _upload(context: RequestContext, id_: str) -> Upload:
    found = next((upload for upload in await _visible(context) if upload.id == id_), None)
    if found is None:
        raise RequestError(404, "not_found", f"This key sent no document {id_[:80]!r}; check the id.")
    return found

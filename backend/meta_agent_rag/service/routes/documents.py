"""Corpora, and documents for them."""

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from ...errors import RequestError
from ...retrieval.corpus.sample import SAMPLE
from ...retrieval.hybrid import HybridRetriever, Retriever
from ..schemas import Corpora, CorpusOut, DocumentOut, DocumentsOut
from ..uploads.receiving import FIELD, received
from ..uploads.records import Upload
from .visiting import KEYED, READ, Id, Ingesting, Visiting, is_id, refusals, the_client

router = APIRouter(tags=["documents"], dependencies=KEYED)
_MOST_SHOWN = 80
_KINDS = (
    "text/plain, text/markdown, text/html, application/pdf, application/x-ndjson, "
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
)
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
                    "properties": {
                        FIELD: {
                            "type": "array",
                            "minItems": 1,
                            "maxItems": 20,
                            "items": {"type": "string", "format": "binary"},
                        }
                    },
                },
            }
        },
    }
}


@router.get("/v1/corpora", response_model=Corpora, responses=refusals(*READ))
async def get_corpora(visit: Visiting) -> Corpora:
    """The corpora that can be asked."""
    found = [await asyncio.to_thread(_corpus, *item) for item in visit.service.retrievers.items()]
    return Corpora(corpora=found)


@router.post(
    "/v1/documents",
    status_code=202,
    response_model=DocumentsOut,
    responses=refusals(401, 403, 404, 408, 409, 413, 415, 422, 429, 503),
    openapi_extra=_FILES,
)
async def post_documents(
    request: Request,
    visit: Ingesting,
    corpus: Annotated[
        str | None, Query(min_length=1, max_length=64, description="Default: the first one served.")
    ] = None,
) -> DocumentsOut:
    """Add files to a corpus: they are read in the background, one after the other; poll each for its state.

    A file with the name of an earlier upload to the corpus replaces it.
    """
    intake = visit.service.intake
    wanted = intake.corpus(corpus)
    with intake.places.one():
        async with received(request.headers, request.receive, intake.folder, intake.limits, intake.suffixes) as files:
            uploads = intake.accept(files, the_client(visit), wanted, time.time())
    return DocumentsOut(documents=[_document(upload) for upload in uploads])


@router.get("/v1/documents/{document_id}", response_model=DocumentOut, responses=refusals(*READ, 403, 404))
async def get_document(document_id: Id, visit: Ingesting) -> DocumentOut:
    """The state of a document that this key sent."""
    client_id = the_client(visit).id
    known = is_id(document_id)
    upload = await asyncio.to_thread(visit.service.intake.status, document_id, client_id) if known else None
    if upload is None:
        raise _unknown(document_id)
    return _document(upload)


@router.get("/v1/documents", response_model=DocumentsOut, responses=refusals(*READ, 403, 422))
async def get_documents(
    visit: Ingesting,
    limit: Annotated[int, Query(ge=1, le=1000, description="Number of documents, the latest first.")] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="Number of documents to skip.")] = 0,
) -> DocumentsOut:
    """The documents that this key sent and has not deleted."""
    sent = await asyncio.to_thread(visit.service.intake.sent, the_client(visit).id)
    return DocumentsOut(documents=[_document(upload) for upload in sent[offset : offset + limit]])


@router.delete("/v1/documents/{document_id}", response_model=DocumentOut, responses=refusals(*READ, 403, 404, 409))
async def delete_document(document_id: Id, visit: Ingesting) -> DocumentOut:
    """Remove a document that this key sent from its corpus. Deleting it again has no effect."""
    intake, patience = visit.service.intake, visit.service.budgets.retrieval
    client_id = the_client(visit).id
    upload = await intake.delete(document_id, client_id, patience=patience) if is_id(document_id) else None
    if upload is None:
        raise _unknown(document_id)
    return _document(upload)


def _corpus(name: str, retriever: Retriever) -> CorpusOut:
    if not isinstance(retriever, HybridRetriever):
        return CorpusOut(name=name, documents=None, passages=None, takes_documents=False)
    documents, passages = retriever.corpus.catalogue.counts()
    return CorpusOut(name=name, documents=documents, passages=passages, takes_documents=name != SAMPLE)


def _unknown(document_id: str) -> RequestError:
    shown = document_id[:_MOST_SHOWN]
    return RequestError(404, "not_found", f"This key sent no document {shown!r}; check the id.")


def _document(upload: Upload) -> DocumentOut:
    return DocumentOut.model_validate(upload, from_attributes=True)

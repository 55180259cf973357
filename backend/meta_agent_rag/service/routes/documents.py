"""Uploads."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from ...errors import RequestError
from ...retrieval.corpus.catalogue import DocumentRecord
from ..gate import Visit
from ..uploads.indexing import Indexing
from ..uploads.receiving import FIELD, received
from ..uploads.records import Upload
from ..uploads.wire import DocumentOut, DocumentsOut
from .visiting import KEYED, READ, Id, Ingesting, Limit, Offset, is_id, refusals, the_client

router = APIRouter(tags=["documents"], dependencies=KEYED)
_MOST_SHOWN = 80
_OTHERS = "check the id; GET /v1/corpora/NAME/documents lists all documents of a corpus by doc_id"
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

    A file replaces what the same key sent to the corpus under its name, never a document of another key or of the
    operator; the same file sent again keeps its id.
    """
    intake = visit.service.intake
    wanted = intake.corpus(corpus, the_client(visit))
    with intake.places.one():
        async with received(request.headers, request.receive, intake.folder, intake.limits, intake.suffixes) as files:
            uploads = await intake.accept(files, the_client(visit), wanted, time.time())
    return DocumentsOut(documents=await _documents(visit, uploads))


@router.get("/v1/documents/{document_id}", response_model=DocumentOut, responses=refusals(*READ, 403, 404))
async def get_document(document_id: Id, visit: Ingesting) -> DocumentOut:
    """The state of a document that this key sent."""
    client_id = the_client(visit).id
    known = is_id(document_id)
    upload = await asyncio.to_thread(visit.service.intake.status, document_id, client_id) if known else None
    if upload is None:
        raise _unknown(document_id)
    return (await _documents(visit, [upload]))[0]


@router.get("/v1/documents", response_model=DocumentsOut, responses=refusals(*READ, 403, 422))
async def get_documents(
    visit: Ingesting,
    limit: Limit = 100,
    offset: Offset = 0,
) -> DocumentsOut:
    """The documents that this key sent and has not deleted, the latest first."""
    sent = await asyncio.to_thread(visit.service.intake.sent, the_client(visit).id)
    return DocumentsOut(documents=await _documents(visit, sent[offset : offset + limit]))


@router.delete("/v1/documents/{document_id}", response_model=DocumentOut, responses=refusals(*READ, 403, 404, 409))
async def delete_document(document_id: Id, visit: Ingesting) -> DocumentOut:
    """Remove a document that this key sent from its corpus. Deleting it again has no effect."""
    intake, patience = visit.service.intake, visit.service.budgets.retrieval
    client_id = the_client(visit).id
    upload = await intake.delete(document_id, client_id, patience=patience) if is_id(document_id) else None
    if upload is None:
        raise _unknown(document_id)
    return (await _documents(visit, [upload]))[0]


def _unknown(document_id: str) -> RequestError:
    shown = document_id[:_MOST_SHOWN]
    return RequestError(404, "not_found", f"This key sent no document {shown!r}; {_OTHERS}.")


async def _documents(visit: Visit, uploads: Sequence[Upload]) -> list[DocumentOut]:
    """Uploads with the id and title of their documents."""
    return await asyncio.to_thread(_with_documents, visit.service.intake.indexing, uploads)


def _with_documents(indexing: Indexing, uploads: Sequence[Upload]) -> list[DocumentOut]:
    known: dict[str, DocumentRecord] = {}
    for corpus in {upload.corpus for upload in uploads if upload.state == "indexed"}:
        with suppress(RequestError):  # it is no longer served
            known |= {document.source: document for document in indexing.documents(corpus)}
    found = [known.get(indexing.source(upload)) if upload.state == "indexed" else None for upload in uploads]
    return [
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
        for upload, document in zip(uploads, found, strict=True)
    ]

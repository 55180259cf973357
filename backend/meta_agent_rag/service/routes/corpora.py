"""Corpora and their documents."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path

from ...errors import RequestError
from ...retrieval.corpus.catalogue import DocumentRecord
from ...retrieval.corpus.sample import SAMPLE
from ...retrieval.hybrid import HybridRetriever, Retriever
from ..gate import Visit
from ..uploads.wire import Corpora, CorpusDocumentOut, CorpusDocumentsOut, CorpusOut, RemovedOut
from .visiting import KEYED, READ, Limit, Offset, Removing, Visiting, refusals, the_client

router = APIRouter(tags=["corpora"], dependencies=KEYED)
CorpusPath = Annotated[str, Path(max_length=64, description="A corpus, as GET /v1/corpora names it.")]
DocumentPath = Annotated[str, Path(max_length=300, description="A `doc_id`, as in citations.")]


@router.get("/v1/corpora", response_model=Corpora, responses=refusals(*READ))
async def get_corpora(visit: Visiting) -> Corpora:
    """The corpora that this key can ask."""
    served = visit.service.retrievers
    found = [await asyncio.to_thread(_corpus, name, served[name]) for name in the_client(visit).allowed(served)]
    return Corpora(corpora=found)


@router.get("/v1/corpora/{name}/documents", response_model=CorpusDocumentsOut, responses=refusals(*READ, 404, 422))
async def get_corpus_documents(
    name: CorpusPath, visit: Visiting, limit: Limit = 100, offset: Offset = 0
) -> CorpusDocumentsOut:
    """The documents of a corpus, ordered by file, for a key of any scope."""
    found = await _documents(visit, name)
    return CorpusDocumentsOut(documents=[CorpusDocumentOut.of(one) for one in found[offset : offset + limit]])


@router.get(
    "/v1/corpora/{name}/documents/{doc_id}", response_model=CorpusDocumentOut, responses=refusals(*READ, 404, 422)
)
async def get_corpus_document(name: CorpusPath, doc_id: DocumentPath, visit: Visiting) -> CorpusDocumentOut:
    """One document of a corpus, by the `doc_id` of a citation."""
    for document in await _documents(visit, name):
        if document.id == doc_id:
            return CorpusDocumentOut.of(document)
    words = f"The corpus {name!r} has no document {doc_id!r}; GET /v1/corpora/{name}/documents lists all."
    raise RequestError(404, "not_found", words)


@router.delete(
    "/v1/corpora/{name}/documents/{doc_id}",
    response_model=RemovedOut,
    responses=refusals(*READ, 403, 404, 409, 422),
)
async def delete_corpus_document(name: CorpusPath, doc_id: DocumentPath, visit: Removing) -> RemovedOut:
    """Remove a document from a corpus: any with the scope `admin`, one that this key sent with `ingest`.

    A document that does not exist is not an error.
    """
    intake, patience = visit.service.intake, visit.service.budgets.retrieval
    removed = await intake.drop(name, doc_id, the_client(visit), patience=patience)
    return RemovedOut(doc_id=doc_id, removed=removed)


async def _documents(visit: Visit, name: str) -> tuple[DocumentRecord, ...]:
    corpus = the_client(visit).corpus(name, visit.service.retrievers)
    return await asyncio.to_thread(visit.service.intake.indexing.documents, corpus)


def _corpus(name: str, retriever: Retriever) -> CorpusOut:
    if not isinstance(retriever, HybridRetriever):
        return CorpusOut(name=name, documents=None, passages=None, takes_documents=False)
    documents, passages = retriever.corpus.catalogue.counts()
    return CorpusOut(name=name, documents=documents, passages=passages, takes_documents=name != SAMPLE)

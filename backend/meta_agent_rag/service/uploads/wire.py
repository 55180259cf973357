"""Corpora and documents as sent to clients."""

from pathlib import PurePath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ...retrieval.corpus.catalogue import DocumentRecord


class CorpusOut(BaseModel):
    """A served corpus; the counts are `null` if unknown."""

    name: str
    documents: int | None
    passages: int | None
    takes_documents: bool


class Corpora(BaseModel):
    """The corpora that can be asked, the default first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"corpora": [{"name": "reports", "documents": 12, "passages": 840, "takes_documents": True}]},
            ]
        }
    )

    corpora: list[CorpusOut]


class CorpusDocumentOut(BaseModel):
    """A document of a corpus: citations name it by `doc_id`, the option `documents` by title or file."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "doc_id": "report-1f0c2d7e9b1a",
                    "title": "Annual report",
                    "file": "report.pdf",
                    "kind": "pdf",
                    "pages": 12,
                    "passages": 31,
                }
            ]
        }
    )

    doc_id: str
    title: str
    file: str = Field(description="The name of its file, without the folder.")
    kind: str = Field(description="The format it was read as.")
    pages: int | None = Field(description="`null` if the format has no pages.")
    passages: int

    @classmethod
    def of(cls, document: DocumentRecord) -> "CorpusDocumentOut":
        """The entry of a document; its folder is not disclosed."""
        return cls(
            doc_id=document.id,
            title=document.title,
            file=PurePath(document.source).name,
            kind=document.kind,
            pages=document.pages,
            passages=document.passages,
        )


class CorpusDocumentsOut(BaseModel):
    """Documents of a corpus, ordered by file."""

    documents: list[CorpusDocumentOut]


class RemovedOut(BaseModel):
    """The result of a removal; `removed` is false if the corpus had no such document."""

    doc_id: str
    removed: bool


class DocumentOut(BaseModel):
    """An uploaded document and its state."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "0198c0de5c7e7d0f9a3c4b1e2f6a7b8c",
                    "name": "report.pdf",
                    "corpus": "reports",
                    "state": "indexed",
                    "message": None,
                    "passages": 31,
                    "doc_id": "report-1f0c2d7e9b1a",
                    "title": "Annual report",
                }
            ]
        }
    )

    id: str
    name: str = Field(description="The stored file name; a later upload of the same name by the same key replaces it.")
    corpus: str
    state: Literal["queued", "parsing", "indexed", "failed", "replaced", "deleted"]
    message: str | None = Field(description="Why it failed, or a note, in one sentence.")
    passages: int = Field(description="Number of passages added.")
    doc_id: str | None = Field(None, description="Its id in the corpus, as in citations, while it is there.")
    title: str | None = Field(None, description="Its title in the corpus, while it is there.")


class DocumentsOut(BaseModel):
    """The accepted documents, in the order of the files."""

    documents: list[DocumentOut]

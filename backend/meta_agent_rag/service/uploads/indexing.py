"""Adds uploaded files to a corpus that is open for questions, and removes documents from it."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import PurePath

from ...errors import CorpusError, RequestError
from ...ingestion.chunkers import ChunkingOptions, prepared
from ...ingestion.pipeline import chunking_options, take_in
from ...ingestion.report import FileOutcome
from ...ingestion.sources import FoundFile, source_name
from ...retrieval.corpus.catalogue import DocumentRecord
from ...retrieval.corpus.editing import CorpusEditor
from ...retrieval.corpus.live import edit_live
from ...retrieval.hybrid import HybridRetriever, Retriever
from ...settings import Settings
from .records import Upload, UploadFolder


@dataclass(frozen=True, kw_only=True)
class Indexing:
    """The served corpora with the originals of their uploads. One edit at a time."""

    settings: Settings
    retrievers: Mapping[str, Retriever]
    folder: UploadFolder

    def documents(self, corpus: str) -> tuple[DocumentRecord, ...]:
        """The documents of a corpus. Raises `RequestError` if it is not served, or has no list of them."""
        retriever = self.retrievers.get(corpus)
        if retriever is None:
            known = ", ".join(self.retrievers)
            raise RequestError(404, "unknown_corpus", f"The corpus {corpus!r} is not served; choose from: {known}.")
        if not isinstance(retriever, HybridRetriever):
            raise RequestError(404, "not_found", f"The corpus {corpus!r} has no list of documents.")
        return retriever.corpus.catalogue.documents()

    def source(self, upload: Upload) -> str:
        """The source of the document of an upload."""
        return source_name(self.folder.original(upload).resolve())

    async def take(self, corpus: str, uploads: Sequence[Upload]) -> dict[str, FileOutcome]:
        """Add waiting uploads; the outcomes by upload id. Raises the errors of an edit."""
        retriever = self.retrievers.get(corpus)
        if not isinstance(retriever, HybridRetriever):
            raise CorpusError(f"The corpus {corpus!r} is no longer served.")
        files = {self.source(upload): upload for upload in uploads}
        found = [
            FoundFile(path=self.folder.file(upload), source=source, named=True) for source, upload in files.items()
        ]
        found += await asyncio.to_thread(self._copies, corpus, retriever, files)
        options, edit = await self._edit(retriever)
        outcomes = await take_in(self.settings, found, options, edit)
        await asyncio.to_thread(self._note_taken_over, corpus, [one for one in outcomes if one.source not in files])
        return {files[outcome.source].id: outcome for outcome in outcomes if outcome.source in files}

    async def remove(self, corpus: str, source: str) -> None:
        """Remove a document and the original at `source`; a copy of its content is then indexed in its own right.

        Raises `RequestError` (409) for the last document of a corpus.
        """
        documents = await asyncio.to_thread(self.documents, corpus)
        retriever = self.retrievers[corpus]
        assert isinstance(retriever, HybridRetriever)
        gone = [document.id for document in documents if document.source == source]
        copies = await asyncio.to_thread(self._copies, corpus, retriever, {source}) if gone else []
        if gone and len(documents) == 1 and not copies:
            words = f"The corpus {corpus!r} has no other document; add one before you delete this one."
            raise RequestError(409, "last_document", words)
        # first: without a document it would be read again
        await asyncio.to_thread(self._unlink_original, corpus, source)
        if gone:
            _, edit = await self._edit(retriever)
            async with edit as editor:
                await editor.remove(gone)
        if copies:
            options, edit = await self._edit(retriever)
            outcomes = await take_in(self.settings, copies, options, edit)
            await asyncio.to_thread(self._note_taken_over, corpus, outcomes)

    async def _edit(
        self, retriever: HybridRetriever
    ) -> tuple[ChunkingOptions, AbstractAsyncContextManager[CorpusEditor]]:
        options = await asyncio.to_thread(chunking_options, self.settings, retriever.encoder.name)
        chunker = prepared(options).name
        return options, edit_live(self.settings, retriever.corpus, retriever.encoder, chunker=chunker)

    def _unlink_original(self, corpus: str, source: str) -> None:
        """Files outside the folder of uploads belong to the operator and stay."""
        original = self.folder.path.joinpath(corpus, *PurePath(source).parts[-2:])
        if source_name(original.resolve()) == source:
            original.unlink(missing_ok=True)

    def _copies(self, corpus: str, retriever: HybridRetriever, files: Collection[str]) -> list[FoundFile]:
        """Originals without a document because another had the same content, which may be about to be removed."""
        known = {document.source for document in retriever.corpus.catalogue.documents()}
        kept = {source_name(path.resolve()): path for path in sorted((self.folder.path / corpus).glob("*/*"))}
        return [
            FoundFile(path=path, source=source, named=True)
            for source, path in kept.items()
            if source not in known and source not in files
        ]

    def _note_taken_over(self, corpus: str, outcomes: Sequence[FileOutcome]) -> None:
        """The uploads of copies that are now documents in their own right say so."""
        passages = {one.source: one.passages for one in outcomes if one.status != "skipped"}
        if not passages:
            return
        for upload in self.folder.current(corpus).values():
            source = self.source(upload)
            if upload.state == "indexed" and source in passages:
                self.folder.note_indexed(upload, passages[source])

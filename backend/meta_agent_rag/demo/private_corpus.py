"""Documents in a separate folder: a visitor's own, or the sample course."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from ..chat.coach.scope import Subject, subject_of
from ..errors import CorpusError, InputError
from ..ingestion.pipeline import ingest
from ..ingestion.sources import IngestReport
from ..retrieval.batching import AsyncEncoder
from ..retrieval.hybrid import Retrieval
from ..retrieval.open_retriever import open_retriever
from ..settings import Settings

CORPUS = "shelf"
MOST_FILES = 50
"""The most files that one visitor may add."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateCorpus:
    """A corpus in `settings.marag_data_dir`, and a `Retriever` over it. It is reopened for every retrieval, one task
    at a time, so that no handle outlives its use and a visit can end at any time.
    """

    settings: Settings
    encoder: AsyncEncoder
    _in_use: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @classmethod
    def below(cls, folder: Path, settings: Settings, encoder: AsyncEncoder) -> "PrivateCorpus":
        """A new corpus, always in embedded stores, even if the settings name servers."""
        own = {"marag_data_dir": folder / uuid4().hex, "qdrant_url": None, "elasticsearch_url": None}
        return cls(settings=settings.model_copy(update=own), encoder=encoder)

    async def add(self, paths: Sequence[Path]) -> IngestReport:
        """Read copies of files into the corpus; a known name replaces the earlier file. Raises the errors of `ingest`.

        Sources are reported only by file name.
        """
        async with self._in_use:
            copies: dict[Path, Path] = {}
            for path in paths:
                names = (path.name, *(f"{path.stem}-{number}{path.suffix}" for number in range(2, len(paths) + 2)))
                copies[next(one for name in names if (one := self._files_folder / name) not in copies)] = path
            if (files := len(set(self._files_folder.glob("*")) | copies.keys())) > MOST_FILES:
                raise InputError(f"{files} files are too many; add at most {MOST_FILES}.")
            self._files_folder.mkdir(parents=True, exist_ok=True)
            for copy, path in copies.items():  # since Gradio stores identical files of two visitors only once
                await asyncio.to_thread(shutil.copy2, path, copy)
            return await ingest(self.settings, list(copies), CORPUS, encoder=self.encoder)

    async def discard(self, name: str) -> None:
        """Remove the file of that name. Raises the errors of `ingest`."""
        async with self._in_use:
            (self._files_folder / Path(name).name).unlink(missing_ok=True)
            if any(self._files_folder.glob("*")):
                await ingest(self.settings, [self._files_folder], CORPUS, encoder=self.encoder, prune=True)
            else:
                await asyncio.to_thread(self.remove)

    async def files(self) -> list[str]:
        """The names of the searchable files, even if reading was interrupted."""
        async with self._in_use:
            try:
                async with open_retriever(self.settings, CORPUS, encoder=self.encoder) as retriever:
                    documents = await asyncio.to_thread(retriever.corpus.documents)
            except CorpusError:  # nothing was added yet
                return []
        return [Path(document.source).name for document in documents]

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        async with self._in_use, open_retriever(self.settings, CORPUS, encoder=self.encoder) as retriever:
            return await retriever.retrieve(queries, k=k, exclude=exclude)

    async def subject(self) -> Subject:
        """The subject of the documents, for the coach."""
        async with self._in_use, open_retriever(self.settings, CORPUS, encoder=self.encoder) as retriever:
            return await asyncio.to_thread(subject_of, retriever.corpus.catalogue)

    def remove(self) -> None:
        """Delete the corpus."""
        for folder in (self.settings.marag_data_dir, self._files_folder):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def _files_folder(self) -> Path:
        folder = self.settings.marag_data_dir
        return folder.with_name(f"{folder.name}-files")  # a data folder's own files are never ingested

"""Documents in a separate folder: a visitor's own, or the sample course."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from ..chat.coach.scope import Subject, subject_of
from ..errors import CorpusError, InputError
from ..ingestion.pipeline import OnProgress, ingest
from ..ingestion.sources import IngestReport
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import HybridRetriever, Retrieval, Retriever
from ..retrieval.open_retriever import open_retriever
from ..settings import Settings
from .workbench import Workbench

CORPUS = "shelf"
_YOURS = ("Your documents", CORPUS)
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
        own = {
            "marag_data_dir": folder / uuid4().hex,
            "qdrant_url": None,
            "elasticsearch_url": None,
        }
        return cls(settings=settings.model_copy(update=own), encoder=encoder)

    @property
    def folder(self) -> Path:
        """The folder of the corpus."""
        return self.settings.marag_data_dir

    async def add(
        self, paths: Sequence[Path], on_progress: OnProgress | None = None, *, take: bool = False
    ) -> IngestReport:
        """Read files into the corpus; with `take` they are copied here first, and a file with a known name replaces the
        earlier one. Raises the errors of `ingest`.

        Sources are reported only by file name.
        """
        async with self._in_use:
            known = await self._files()
            replaced = {path.name for path in paths}.intersection(known) if take else ()
            files = len(known) + len(paths) - len(replaced)
            if files > MOST_FILES:
                raise InputError(f"{files} files are too many; add at most {MOST_FILES}.")
            kept = await asyncio.to_thread(self._taken, paths) if take else list(paths)
            return await ingest(self.settings, kept, CORPUS, encoder=self.encoder, on_progress=on_progress)

    async def discard(self, name: str) -> None:
        """Remove the file of that name. Raises the errors of `ingest`."""
        async with self._in_use:
            for file in list(self._files_folder.glob("*/*")):
                if file.name == name:
                    await asyncio.to_thread(shutil.rmtree, file.parent)
            if any(self._files_folder.glob("*/*")):
                await ingest(self.settings, [self._files_folder], CORPUS, encoder=self.encoder, prune=True)
            else:
                await asyncio.to_thread(self.remove)

    async def files(self) -> list[str]:
        """The names of the searchable files, even if reading was interrupted."""
        async with self._in_use:
            return await self._files()

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        async with self._in_use, open_retriever(self.settings, CORPUS, encoder=self.encoder) as retriever:
            return await retriever.retrieve(queries, k=k, exclude=exclude)

    async def subject(self) -> Subject:
        """The subject of the documents, for the coach."""
        async with self._in_use, open_retriever(self.settings, CORPUS, encoder=self.encoder) as retriever:
            return await subject_in(retriever)

    def remove(self) -> None:
        """Delete the corpus."""
        for folder in (self.folder, self._files_folder):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def _files_folder(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-files")  # a data folder's own files are never ingested

    async def _files(self) -> list[str]:
        try:
            async with open_retriever(self.settings, CORPUS, encoder=self.encoder) as retriever:
                documents = await asyncio.to_thread(retriever.corpus.catalogue.documents)
        except CorpusError:  # nothing was added yet
            return []
        return [Path(document.source).name for document in documents]

    def _taken(self, paths: Sequence[Path]) -> list[Path]:
        homes: dict[Path, Path] = {}
        for path in paths:
            home = self._files_folder / sha256(os.fsencode(path.name)).hexdigest()
            if home in homes:  # two files with the same name in one upload
                home = self._files_folder / uuid4().hex
            homes[home] = path
        for home, path in homes.items():
            home.mkdir(parents=True, exist_ok=True)
            # a copy, because Gradio stores identical files of two visitors only once
            shutil.copy2(path, home / path.name)
        return [home / path.name for home, path in homes.items()]


async def subject_in(retriever: Retriever) -> Subject:
    """The subject of a retriever's documents; empty if unknown."""
    if isinstance(retriever, PrivateCorpus):
        return await retriever.subject()
    catalogue = retriever.corpus.catalogue if isinstance(retriever, HybridRetriever) else None
    return await asyncio.to_thread(subject_of, None, catalogue)


def corpora(workbench: Workbench, own: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The selectable corpora, as (label, name); the visitor's first if there are `own` files."""
    known = [(f"{name} documents" if name == SAMPLE else name, name) for name in workbench.corpora()]
    return [*([_YOURS] if own else []), *known]

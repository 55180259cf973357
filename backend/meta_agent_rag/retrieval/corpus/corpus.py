"""A corpus on disk: opening it for questions, listing, changing its place, and dropping it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ...discovery import named
from ...errors import CorpusError, DamagedIndexError, SettingsError
from ...settings import Settings
from ..passage import Found, Passage
from ..stores.store import DenseStore, Hit, LexicalStore
from ..vectors import FloatVector, Rows
from .catalogue import Catalogue, DocumentRecord
from .places import (
    LOCATIONS,
    MANIFEST,
    CorpusFolder,
    Manifest,
    chosen_stores,
    corpus_folder,
    publish,
    require_whole,
    stores_of,
)
from .sample import SAMPLE

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class View:
    """One state of a corpus, for one question."""

    manifest: Manifest
    catalogue: Catalogue
    dense: DenseStore
    lexical: LexicalStore

    async def nearest(self, vector: FloatVector, k: int, *, among: Rows | None = None) -> list[Found]:
        """The k passages nearest to `vector`, shape (dimension,); the cosine is in `dense` and `score`."""
        hits = await self.dense.search(vector, k, among=among)
        return [Found(passage=one, score=score, dense=score) for one, score in self._passages(hits)]

    async def matching(self, text: str, k: int, *, among: Rows | None = None) -> list[Found]:
        """The k best passages by BM25, which is in `lexical` and `score`; any text is a valid query."""
        hits = await self.lexical.search(text, k, among=among)
        return [Found(passage=one, score=score, lexical=score) for one, score in self._passages(hits)]

    def _passages(self, hits: Sequence[Hit]) -> list[tuple[Passage, float]]:
        """The passages found, without those that are gone since, or not yet published."""
        found = self.catalogue.passages_in([hit.row for hit in hits if hit.row <= self.manifest.last_row])
        return [(found[hit.row], hit.score) for hit in hits if hit.row in found]


class Corpus:
    """An open corpus, which follows its edits: each question sees the state that is published when it begins."""

    def __init__(self, settings: Settings, folder: CorpusFolder, manifest: Manifest, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._folder = folder
        self._stack = stack
        self._manifest = manifest
        self._catalogue = self._opened_catalogue(manifest)
        self._view: View | None = None
        self._seen: tuple[int, int] | None = None

    @property
    def manifest(self) -> Manifest:
        """What the corpus is now."""
        self._follow()
        return self._manifest

    @property
    def catalogue(self) -> Catalogue:
        """The documents and passages, as they are now."""
        self._follow()
        return self._catalogue

    async def view(self) -> View:
        """The published state. Raises `CorpusError` if the corpus was rebuilt with another encoder."""
        manifest = self.manifest
        if self._view is None or self._view.manifest != manifest:
            self._view = await self._opened(manifest)
        return self._view

    async def _opened(self, manifest: Manifest) -> View:
        """Open the stores; a lost or damaged index is derived again. A state may be removed while it is opened."""
        while True:
            try:
                return await self._stores(manifest)
            except DamagedIndexError as error:
                if self.manifest == manifest:
                    manifest = await self._derived(error)
                else:
                    manifest = self._manifest

    async def _derived(self, error: DamagedIndexError) -> Manifest:
        _LOG.warning("%s It is derived again from the catalogue.", error)
        async with self._folder.locked():
            return await publish(self._settings, self._folder, self.manifest, self._catalogue, anew=True)

    async def _stores(self, manifest: Manifest) -> View:
        require_whole(self._folder.index(manifest))
        dense, lexical, dense_place, lexical_place = stores_of(self._settings, self._folder, manifest)
        before = self._view
        if before is not None and dense.served and before.manifest.generation == manifest.generation:
            return View(manifest=manifest, catalogue=self._catalogue, dense=before.dense, lexical=before.lexical)
        opened_dense = await self._stack.enter_async_context(dense.open(dense_place, manifest.dimension))
        opened_lexical = await self._stack.enter_async_context(lexical.open(lexical_place))
        return View(manifest=manifest, catalogue=self._catalogue, dense=opened_dense, lexical=opened_lexical)

    def _follow(self) -> None:
        """Look whether another state was published. A dropped corpus stays as it was opened."""
        try:
            status = self._folder.manifest_file.stat()
        except FileNotFoundError:
            return
        if (seen := (status.st_ino, status.st_mtime_ns)) == self._seen:
            return
        manifest = self._folder.read()
        if manifest is None:
            return
        if manifest.generation != self._manifest.generation:
            require_encoder(manifest, self._manifest.encoder, self._manifest.dimension)
            self._catalogue = self._opened_catalogue(manifest)
        self._manifest, self._seen = manifest, seen

    def _opened_catalogue(self, manifest: Manifest) -> Catalogue:
        catalogue = self._folder.catalogue(manifest)
        self._stack.callback(catalogue.close)
        return catalogue


@asynccontextmanager
async def open_corpus(settings: Settings, name: str, encoder_name: str, dimension: int) -> AsyncIterator[Corpus]:
    """Open the corpus `name` for questions encoded by `encoder_name`, and close it afterwards.

    If an edit was interrupted, its index is derived first. Raises `CorpusError` if the corpus does not exist, is empty,
    or was built with another encoder.
    """
    folder = corpus_folder(settings.marag_data_dir, name)
    manifest = await asyncio.to_thread(_existing, folder)
    require_encoder(manifest, encoder_name, dimension)
    async with AsyncExitStack() as stack:
        corpus = Corpus(settings, folder, manifest, stack)
        if corpus.catalogue.edits() != manifest.edits:
            await _caught_up(settings, folder, corpus)
        if not corpus.manifest.passages:
            raise CorpusError(
                f"The corpus {name!r} contains no passages yet; `marag ingest` continues where it stopped."
            )
        await corpus.view()
        yield corpus


async def _caught_up(settings: Settings, folder: CorpusFolder, corpus: Corpus) -> None:
    """Publish what an interrupted edit left in the catalogue. If an edit is under way, what is published will do."""
    try:
        async with folder.locked():
            await publish(settings, folder, corpus.manifest, corpus.catalogue)
    except CorpusError:
        if not corpus.manifest.passages:
            raise


def require_corpus(data_dir: Path, name: str, *, to_build: bool = True) -> None:
    """Raise the error of `open_corpus` for a missing corpus, before anything else is loaded.

    `sample` always exists, because it is built on first use. The message says how to build it only if `to_build`.
    """
    folder = corpus_folder(data_dir, name)
    if name != SAMPLE and folder.read() is None:
        raise CorpusError(_missing(folder, to_build=to_build))


def list_corpora(data_dir: Path) -> tuple[Manifest, ...]:
    """The manifests of all corpora, by name; other folders are skipped. Counts include what is not published yet."""
    manifests = []
    for file in sorted((data_dir / "corpora").glob(f"[!.]*/{MANIFEST}")):
        folder = CorpusFolder(home=file.parents[1], name=file.parent.name)
        with suppress(CorpusError):
            manifest = _existing(folder)
            with closing(folder.catalogue(manifest)) as catalogue:
                documents, passages = catalogue.counts()
            manifests.append(manifest.model_copy(update={"documents": documents, "passages": passages}))
    return tuple(manifests)


def read_documents(data_dir: Path, name: str) -> tuple[DocumentRecord, ...]:
    """The documents of the corpus `name`. Raises `CorpusError` if it does not exist."""
    with open_catalogue(data_dir, name) as catalogue:
        return catalogue.documents()


def read_titles(data_dir: Path, name: str) -> tuple[str, ...]:
    """The subjects of the corpus `name`: titles of its documents, and of passages ingested as such.

    Sorted, without duplicates. Raises `CorpusError` if the corpus does not exist.
    """
    with open_catalogue(data_dir, name) as catalogue:
        return catalogue.titles()


@contextmanager
def open_catalogue(data_dir: Path, name: str) -> Iterator[Catalogue]:
    """The catalogue of the corpus `name`, without its indexes. Raises `CorpusError` if it does not exist."""
    folder = corpus_folder(data_dir, name)
    with closing(folder.catalogue(_existing(folder))) as catalogue:
        yield catalogue


async def remove_documents(settings: Settings, name: str, doc_ids: Sequence[str]) -> None:
    """Remove documents of the corpus `name`; unknown ids are ignored. No encoder is needed.

    Raises `CorpusError` if the corpus does not exist or is being edited.
    """
    folder = corpus_folder(settings.marag_data_dir, name)
    await asyncio.to_thread(_existing, folder)
    async with folder.locked():
        manifest = await asyncio.to_thread(_existing, folder)
        with closing(folder.catalogue(manifest)) as catalogue:
            await asyncio.to_thread(catalogue.replace, (), doc_ids)
            await asyncio.to_thread(catalogue.forget_unused)
            await publish(settings, folder, manifest, catalogue)


async def copy_corpus(settings: Settings, name: str, to: str) -> Manifest:
    """Move the index of a corpus to `servers`, or back (`embedded`); nothing is encoded again.

    Raises `UnknownNameError` for another place, and `CorpusError`.
    """
    target = named("location", to, LOCATIONS)
    folder = corpus_folder(settings.marag_data_dir, name)
    if target == LOCATIONS["servers"] and not (settings.qdrant_url and settings.elasticsearch_url):
        raise SettingsError(f"Set QDRANT_URL and ELASTICSEARCH_URL to copy the corpus {name!r} there.")
    await asyncio.to_thread(_existing, folder)
    async with folder.locked():
        manifest = await asyncio.to_thread(_existing, folder)
        if manifest.dense_store == target.dense:
            return manifest
        moved = manifest.model_copy(update={"dense_store": target.dense, "lexical_store": target.lexical})
        with closing(folder.catalogue(manifest)) as catalogue:
            moved = await publish(settings, folder, moved, catalogue, anew=True)
        with suppress(CorpusError, SettingsError):  # a server that is gone holds nothing to remove
            await stores_of(settings, folder, manifest).drop()
    return moved


async def drop_corpus(settings: Settings, name: str) -> Manifest:
    """Remove the corpus `name` with its indexes; returns its manifest.

    Raises `CorpusError` if it does not exist, was not created by this package, or is being edited.
    """
    folder = corpus_folder(settings.marag_data_dir, name)
    await asyncio.to_thread(_existing, folder)
    async with folder.locked():
        manifest = await asyncio.to_thread(_existing, folder)
        await stores_of(settings, folder, manifest).drop()
        await asyncio.to_thread(folder.drop)
    return manifest


async def reach(settings: Settings) -> None:
    """Ask the servers, if new corpora go there, about one that does not exist. `CorpusError` if one does not answer."""
    stores = chosen_stores(settings)
    nothing = Manifest(
        name="nothing", encoder="none", dimension=1, chunker="none",
        dense_store=stores.dense, lexical_store=stores.lexical,
    )  # fmt: skip
    await stores_of(settings, corpus_folder(settings.marag_data_dir, "nothing"), nothing).drop()


def require_encoder(manifest: Manifest, encoder_name: str, dimension: int) -> None:
    """Raise `CorpusError` unless a corpus was built with this encoder."""
    built, given = (manifest.encoder, manifest.dimension), (encoder_name, dimension)
    if built != given:
        raise CorpusError(
            f"The corpus {manifest.name!r} was built with the encoder {built[0]!r} ({built[1]} dimensions), not with "
            f"{given[0]!r} ({given[1]}); set ENCODER={built[0]}, or rebuild it with "
            f"`marag ingest PATH... --corpus {manifest.name} --rebuild`."
        )


def _existing(folder: CorpusFolder) -> Manifest:
    manifest = folder.read()
    if manifest is None:
        raise CorpusError(_missing(folder))
    return manifest


def _missing(folder: CorpusFolder, *, to_build: bool = True) -> str:
    if folder.name == SAMPLE:
        return f"The corpus {SAMPLE!r} does not exist yet; it is built on first use."
    known = ", ".join(repr(manifest.name) for manifest in list_corpora(folder.home.parent)) or "none yet"
    if not to_build:
        return f"There is no corpus {folder.name!r} (known: {known}); see `marag corpora list`."
    return (
        f"There is no corpus {folder.name!r} (known: {known}; see `marag corpora list`); "
        f"build it with `marag ingest PATH... --corpus {folder.name}`."
    )

"""A corpus on disk: its folder, the index of each state, opening it for questions, listing and dropping it.

    <data>/corpora/<name>/manifest.json      what the corpus is, and which state is published
        <generation>/catalogue.sqlite        documents, passages, vectors
        <generation>/index-<edits>/          the files derived for one state, never changed once it is published

Publishing is writing the next `index-` folder and then replacing the manifest, by one rename. A reader keeps what it
opened and looks at the manifest before each question. A killed writer leaves the manifest as it was; if its catalogue
was already ahead, the next one who opens the corpus derives the index again. A rebuild is another generation.
"""

import asyncio
import logging
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import uuid4

import numpy as np
from filelock import AsyncFileLock, Timeout
from pydantic import AwareDatetime, BaseModel, Field, NonNegativeInt, PositiveInt, ValidationError

from ...errors import CorpusError, DamagedIndexError, InputError, SettingsError, StorageError
from ...settings import Settings
from ..passage import Found, Passage
from ..stores.elastic import ElasticsearchStore
from ..stores.embedded import MatrixStore, WordStore
from ..stores.qdrant import QdrantStore
from ..stores.store import ROWS_FILE, Changes, Hit, Store, StorePlace
from ..vectors import FloatVector, Rows
from .catalogue import FILE_NAME, Catalogue, DocumentRecord
from .sample import SAMPLE

_LOG = logging.getLogger(__name__)
MANIFEST = "manifest.json"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PATIENCE_SECONDS = 3.0
_KEPT = 2
"""The states of an index that are kept: a reader may be about to open the last but one."""


class Manifest(BaseModel, frozen=True):
    """How a corpus was built, and the state that is published.

    `edits` numbers the states of the catalogue, `last_row` is the highest row of the published one; `created` is
    in UTC; `generation` distinguishes a rebuilt corpus from its predecessor.
    """

    name: str
    encoder: str
    dimension: PositiveInt
    chunker: str
    documents: NonNegativeInt = 0
    passages: NonNegativeInt = 0
    edits: NonNegativeInt = 0
    last_row: NonNegativeInt = 0
    stores: Literal["embedded", "servers"]
    generation: str = Field(default_factory=lambda: uuid4().hex[:8])
    created: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))


@dataclass(frozen=True, kw_only=True)
class CorpusFolder:
    """`<data_dir>/corpora/<name>`, and the lock beside it."""

    path: Path
    name: str

    def read(self) -> Manifest | None:
        """The manifest; `None` if there is no corpus. `CorpusError` for a folder that this package did not create."""
        if not (self.path.exists() or self.path.is_symlink()):
            return None
        try:
            if not self.path.is_symlink():
                return Manifest.model_validate_json((self.path / MANIFEST).read_bytes())
        except (OSError, ValidationError):
            if self.path.is_dir() and not set(os.listdir(self.path)) - {f".{MANIFEST}"}:
                return None  # of an interrupted creation or removal
        raise CorpusError(
            f"{str(self.path)!r} is not a corpus (it has no matching {MANIFEST}) and was left unchanged; move it away, "
            "or choose another corpus name."
        )

    def existing(self) -> Manifest:
        """The manifest; raises `CorpusError` if there is no corpus."""
        if (manifest := self.read()) is not None:
            return manifest
        if self.name == SAMPLE:
            raise CorpusError(f"The corpus {SAMPLE!r} does not exist yet; it is built on first use.")
        known = ", ".join(repr(one.name) for one in list_corpora(self.path.parents[1])) or "none yet"
        raise CorpusError(
            f"There is no corpus {self.name!r} (known: {known}); "
            f"build it with `marag ingest PATH... --corpus {self.name}`."
        )

    def write(self, manifest: Manifest) -> None:
        """Publish: replace the manifest atomically and durably, then remove what no reader can want."""
        self.path.mkdir(exist_ok=True)
        unfinished = self.path / f".{MANIFEST}"
        with unfinished.open("w", encoding="utf-8") as stream:
            stream.write(manifest.model_dump_json(indent=2) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(self.path / MANIFEST)
        former = [one for one in self.path.iterdir() if one.is_dir() and one.name != manifest.generation]
        indexes = (self.path / manifest.generation).glob("index-*")
        for folder in [*former, *sorted(indexes, key=lambda index: int(index.name.split("-")[1]))[:-_KEPT]]:
            shutil.rmtree(folder, ignore_errors=True)

    def catalogue(self, manifest: Manifest) -> Catalogue:
        """The catalogue of a generation. Raises `CorpusError` if a corpus with passages has lost it."""
        file = self.path / manifest.generation / FILE_NAME
        if manifest.passages and not (file.is_file() and file.stat().st_size):
            raise CorpusError(
                f"The catalogue of the corpus {manifest.name!r} is missing; rebuild the corpus with "
                f"`marag ingest PATH... --corpus {manifest.name} --rebuild`, or drop it."
            )
        with suppress(FileNotFoundError):  # dropped since its manifest was read, which the catalogue reports
            file.parent.mkdir(exist_ok=True)
        return Catalogue(file, manifest.dimension)

    def index(self, manifest: Manifest) -> Path:
        """The folder with the derived files of a state."""
        return self.path / manifest.generation / f"index-{manifest.edits}"

    @asynccontextmanager
    async def locked(self, patience: float = _PATIENCE_SECONDS) -> AsyncIterator[None]:
        """Exclusive access, across processes, to edit this corpus; readers need none.

        Raises `CorpusError` if another process has it for longer than `patience` seconds. Locks end with their process.
        """
        lock = AsyncFileLock(self.path.with_name(f".{self.name}.lock"), timeout=patience, run_in_executor=False)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            await lock.acquire()
        except Timeout:
            busy = "is being built or changed elsewhere; try again when that is done."
            raise CorpusError(f"The corpus {self.name!r} {busy}") from None
        except OSError as error:
            home = str(self.path.parent)
            raise CorpusError(f"{home!r} cannot be written to; set MARAG_DATA_DIR. ({error})") from error
        try:
            yield
        finally:
            await lock.release()

    def drop(self) -> None:
        """Remove the corpus; the manifest last, so that the remains of a kill are still identified."""
        for one in self.path.iterdir():
            if one.is_dir():
                shutil.rmtree(one)
        (self.path / MANIFEST).unlink(missing_ok=True)
        with suppress(OSError):  # a file that is not ours
            self.path.rmdir()


def corpus_folder(data_dir: Path, name: str) -> CorpusFolder:
    """The place of the corpus `name`. Raises `InputError` for an invalid name."""
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"{name!r} is not a valid corpus name; use 1 to 64 of a-z, 0-9, '.', '_' and '-', "
            "starting with a letter or digit."
        )
    return CorpusFolder(path=data_dir / "corpora" / name, name=name)


def stores_for(settings: Settings) -> Literal["embedded", "servers"]:
    """Where a new corpus is indexed: on the servers if both have an address. Raises `SettingsError` if only one has."""
    addresses = (settings.qdrant_url, settings.elasticsearch_url)
    if any(addresses) and not all(addresses):
        raise SettingsError("Only one of QDRANT_URL and ELASTICSEARCH_URL is set; set both, or neither.")
    return "servers" if all(addresses) else "embedded"


@asynccontextmanager
async def stores_of(
    settings: Settings, folder: CorpusFolder, manifest: Manifest, before: Path | None = None
) -> AsyncIterator[tuple[Store[FloatVector], Store[str]]]:
    """The stores of a state, closed at the end. Raises `CorpusError` if they are on servers without an address."""
    place = StorePlace(
        folder=folder.index(manifest),
        name=f"marag-{manifest.name}-{manifest.generation}",
        dimension=manifest.dimension,
        before=before,
    )
    if manifest.stores == "embedded":
        yield MatrixStore(place), WordStore(place)
        return
    if not (settings.qdrant_url and settings.elasticsearch_url):
        raise CorpusError(
            f"The indexes of the corpus {manifest.name!r} are on servers; set QDRANT_URL and ELASTICSEARCH_URL, or "
            f"rebuild it here: `marag ingest PATH... --corpus {manifest.name} --rebuild`."
        )
    async with AsyncExitStack() as stack:
        dense = QdrantStore(replace(place, url=settings.qdrant_url, api_key=settings.qdrant_api_key))
        stack.push_async_callback(dense.close)
        words = replace(place, url=settings.elasticsearch_url, api_key=settings.elasticsearch_api_key)
        lexical = ElasticsearchStore(words)
        stack.push_async_callback(lexical.close)
        yield dense, lexical


async def drop_stores(settings: Settings, folder: CorpusFolder, manifest: Manifest) -> None:
    """Remove the indexes of a corpus from its servers, if it has any."""
    async with stores_of(settings, folder, manifest) as (dense, lexical):
        await dense.drop()
        await lexical.drop()


async def publish(
    settings: Settings, folder: CorpusFolder, manifest: Manifest, catalogue: Catalogue, *, anew: bool = False
) -> None:
    """Derive the index of the catalogue's contents and publish it. Call it under the lock.

    Only the difference to the published state is computed, unless the index must be made `anew`, or its files are
    damaged.
    """
    try:
        await _derive(settings, folder, manifest, catalogue, anew=anew)
    except (DamagedIndexError, ValueError, EOFError):
        if anew or manifest.stores != "embedded":
            raise
        await _derive(settings, folder, manifest, catalogue, anew=True)


async def _derive(
    settings: Settings, folder: CorpusFolder, manifest: Manifest, catalogue: Catalogue, *, anew: bool
) -> None:
    edits, (documents, passages) = await asyncio.to_thread(lambda: (catalogue.edits(), catalogue.counts()))
    if edits == manifest.edits and not anew and (folder.path / MANIFEST).exists():
        return
    rows = await asyncio.to_thread(catalogue.rows)
    old, before = np.zeros(0, dtype=np.int64), None
    if not anew and manifest.edits:
        try:
            old, before = np.load(folder.index(manifest) / ROWS_FILE), folder.index(manifest)
        except (OSError, ValueError, EOFError):  # lost
            anew = True
    added = np.setdiff1d(rows, old)
    changes = Changes(removed=np.setdiff1d(old, rows), added=added, parts=lambda: catalogue.parts(added))
    last = int(rows[-1]) if len(rows) else manifest.last_row
    now = manifest.model_copy(update={"documents": documents, "passages": passages, "edits": edits, "last_row": last})
    target = folder.index(now)
    try:
        if target.exists():  # of a killed writer, or damaged
            await asyncio.to_thread(shutil.rmtree, target)
        target.mkdir(parents=True)
        np.save(target / ROWS_FILE, rows)
        async with stores_of(settings, folder, now, before) as (dense, lexical):
            for store in (lexical, dense):
                if anew:
                    await store.drop()
                await store.publish(changes)
        await asyncio.to_thread(folder.write, now)
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, FileNotFoundError):
            raise DamagedIndexError(f"The index {str(before)!r} has lost a file ({error}).") from error
        raise StorageError(
            f"{str(folder.path)!r} cannot be written ({error}); free disk space, or set MARAG_DATA_DIR to another disk."
        ) from error


@dataclass(frozen=True, kw_only=True)
class View:
    """One state of a corpus, for one question."""

    manifest: Manifest
    catalogue: Catalogue
    dense: Store[FloatVector]
    lexical: Store[str]

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
    """An open corpus, which follows its edits: each question sees the state that is published when it begins.

    Documents whose change has been committed, but not yet published, are missing meanwhile.
    """

    def __init__(self, settings: Settings, folder: CorpusFolder, manifest: Manifest, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._folder = folder
        self._stack = stack
        self._manifest = manifest
        self._catalogue = stack.enter_context(closing(folder.catalogue(manifest)))
        self._view: View | None = None
        self._seen: tuple[int, int] | None = None

    @property
    def manifest(self) -> Manifest:
        """What the corpus is now."""
        return self._follow()

    @property
    def catalogue(self) -> Catalogue:
        """The documents and passages, as they are now."""
        self._follow()
        return self._catalogue

    def documents(self) -> tuple[DocumentRecord, ...]:
        """The documents, as they are now."""
        return self.catalogue.documents()

    def _follow(self) -> Manifest:
        """Look whether another state was published. A dropped corpus stays as it was opened."""
        try:
            status = (self._folder.path / MANIFEST).stat()
        except FileNotFoundError:
            return self._manifest
        seen = (status.st_ino, status.st_mtime_ns)
        if seen != self._seen and (manifest := self._folder.read()) is not None:
            if manifest.generation != self._manifest.generation:
                require_alike(manifest, self._manifest.encoder, self._manifest.dimension)
                self._catalogue = self._stack.enter_context(closing(self._folder.catalogue(manifest)))
            self._manifest, self._seen = manifest, seen
        return self._manifest

    async def view(self) -> View:
        """The published state; a lost or damaged index is derived again from the catalogue.

        Raises `CorpusError` if the corpus was rebuilt with another encoder.
        """
        while self._view is None or self._view.manifest != self._follow():
            manifest, before = self._manifest, self._view
            if before is not None and manifest.stores == "servers" and before.catalogue is self._catalogue:
                self._view = replace(before, manifest=manifest)
                continue
            try:
                stores = stores_of(self._settings, self._folder, manifest)
                dense, lexical = await self._stack.enter_async_context(stores)
                await dense.open()
                await lexical.open()
                self._view = View(manifest=manifest, catalogue=self._catalogue, dense=dense, lexical=lexical)
            except DamagedIndexError as error:
                if self._follow() == manifest:  # otherwise it was removed while it was opened
                    _LOG.warning("%s It is derived again from the catalogue.", error)
                    async with self._folder.locked():
                        await publish(self._settings, self._folder, self._follow(), self._catalogue, anew=True)
        return self._view


@asynccontextmanager
async def open_corpus(settings: Settings, name: str, encoder_name: str, dimension: int) -> AsyncIterator[Corpus]:
    """Open the corpus `name` for questions encoded by `encoder_name`, and close it afterwards.

    If an edit was interrupted, its index is derived first. Raises `CorpusError` if the corpus does not exist, is empty,
    or was built with another encoder.
    """
    folder = corpus_folder(settings.marag_data_dir, name)
    manifest = await asyncio.to_thread(folder.existing)
    require_alike(manifest, encoder_name, dimension)
    async with AsyncExitStack() as stack:
        corpus = Corpus(settings, folder, manifest, stack)
        if corpus.catalogue.edits() != manifest.edits:
            with suppress(CorpusError):  # an edit is under way: what is published will do
                async with folder.locked():
                    await publish(settings, folder, corpus.manifest, corpus.catalogue)
        if not corpus.manifest.passages:
            raise CorpusError(
                f"The corpus {name!r} contains no passages yet; `marag ingest` continues where it stopped."
            )
        await corpus.view()
        yield corpus


def require_corpus(data_dir: Path, name: str) -> None:
    """Raise the error of `open_corpus` for a missing corpus, before anything else is loaded.

    `sample` always exists, because it is built on first use.
    """
    folder = corpus_folder(data_dir, name)
    if name != SAMPLE:
        folder.existing()


def list_corpora(data_dir: Path) -> tuple[Manifest, ...]:
    """The manifests of all corpora, by name; other folders are skipped."""
    found = []
    for file in sorted((data_dir / "corpora").glob(f"[!.]*/{MANIFEST}")):
        with suppress(CorpusError):
            found.append(CorpusFolder(path=file.parent, name=file.parent.name).read())
    return tuple(one for one in found if one is not None)


def read_documents(data_dir: Path, name: str) -> tuple[DocumentRecord, ...]:
    """The documents of the corpus `name`. Raises `CorpusError` if it does not exist."""
    with open_catalogue(data_dir, name) as catalogue:
        return catalogue.documents()


@contextmanager
def open_catalogue(data_dir: Path, name: str) -> Iterator[Catalogue]:
    """The catalogue of the corpus `name`, without its indexes. Raises `CorpusError` if it does not exist."""
    folder = corpus_folder(data_dir, name)
    with closing(folder.catalogue(folder.existing())) as catalogue:
        yield catalogue


async def remove_documents(settings: Settings, name: str, doc_ids: Sequence[str]) -> None:
    """Remove documents of the corpus `name`; unknown ids are ignored. No encoder is needed.

    Raises `CorpusError` if the corpus does not exist or is being edited.
    """
    folder = corpus_folder(settings.marag_data_dir, name)
    await asyncio.to_thread(folder.existing)
    async with folder.locked():
        manifest = await asyncio.to_thread(folder.existing)
        with closing(folder.catalogue(manifest)) as catalogue:
            await asyncio.to_thread(catalogue.replace, (), doc_ids)
            await asyncio.to_thread(catalogue.forget_unused)
            await publish(settings, folder, manifest, catalogue)


async def drop_corpus(settings: Settings, name: str) -> Manifest:
    """Remove the corpus `name` with its indexes; returns its manifest.

    Raises `CorpusError` if it does not exist, was not created by this package, or is being edited.
    """
    folder = corpus_folder(settings.marag_data_dir, name)
    await asyncio.to_thread(folder.existing)
    async with folder.locked():
        manifest = await asyncio.to_thread(folder.existing)
        await drop_stores(settings, folder, manifest)
        await asyncio.to_thread(folder.drop)
    return manifest


async def reach(settings: Settings) -> None:
    """Ask the servers, if new corpora go there, about one that does not exist. `CorpusError` if one does not answer."""
    folder, stores = corpus_folder(settings.marag_data_dir, "nothing"), stores_for(settings)
    await drop_stores(
        settings, folder, Manifest(name="nothing", encoder="none", dimension=1, chunker="none", stores=stores)
    )


def require_alike(manifest: Manifest, encoder: str, dimension: int, chunker: str | None = None) -> None:
    """Raise `CorpusError` unless a corpus was built with this encoder and, if given, this chunker."""
    if (manifest.encoder, manifest.dimension) != (encoder, dimension):
        wanted = f"the encoder {manifest.encoder!r} ({manifest.dimension} dimensions), not with {encoder!r}"
        again = f"ENCODER={manifest.encoder}"
    elif chunker not in (None, manifest.chunker):
        wanted, again = f"the chunker {manifest.chunker!r}, not with {chunker!r}", "the chunker"
    else:
        return
    raise CorpusError(
        f"The corpus {manifest.name!r} was built with {wanted}; set {again} again, or rebuild it: "
        f"`marag ingest PATH... --corpus {manifest.name} --rebuild`."
    )

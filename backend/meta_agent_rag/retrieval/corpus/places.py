"""The places of a corpus: its folder, the manifest that points to its current state, and its stores.

    <data>/corpora/<name>/manifest.json      what the corpus is, and which state is published
        <generation>/catalogue.sqlite        documents, passages, vectors
        <generation>/index-<edits>-<store>/  the files derived for one state, never changed once it is published

Publishing is writing the next `index-` folder and then replacing the manifest, by one rename. A reader keeps what it
opened and looks at the manifest before each question. A killed writer leaves the manifest as it was; if its catalogue
was already ahead, the next one who opens the corpus derives the index again. A rebuild is another generation.
"""

import asyncio
import json
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np
from filelock import FileLock, Timeout
from pydantic import AwareDatetime, BaseModel, Field, NonNegativeInt, PositiveInt, ValidationError

from ...discovery import named
from ...errors import CorpusError, DamagedIndexError, InputError, SettingsError, StorageError
from ...settings import Settings
from ..stores import discover_stores
from ..stores.store import CREATED_BY, Added, Changes, DenseBackend, LexicalBackend, StorePlace
from ..vectors import Rows
from .catalogue import FILE_NAME, Catalogue

MANIFEST = "manifest.json"
_ROWS, _SIZES = "published.npy", "sizes.json"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PATIENCE_SECONDS = 3.0
_PAUSE_SECONDS = 0.05
_KEPT = 2
"""The states of an index that are kept: a reader may be about to open the last but one."""


class Manifest(BaseModel, frozen=True):
    """How a corpus was built, and the state that is published.

    `edits` numbers the states of the catalogue, `last_row` is the highest row of the published one; `created` is
    in UTC; `generation` distinguishes a rebuilt corpus from its predecessor.
    """

    name: str
    created_by: str = CREATED_BY
    encoder: str
    dimension: PositiveInt
    chunker: str
    documents: NonNegativeInt = 0
    passages: NonNegativeInt = 0
    edits: NonNegativeInt = 0
    last_row: NonNegativeInt = 0
    dense_store: str
    lexical_store: str
    generation: str = Field(default_factory=lambda: uuid4().hex[:8])
    created: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    def built_like(self, other: "Manifest") -> bool:
        """Whether both have the same encoder and chunker, so that one can be continued as the other."""
        return (self.encoder, self.dimension, self.chunker) == (other.encoder, other.dimension, other.chunker)


@dataclass(frozen=True, kw_only=True)
class CorpusFolder:
    """`<data_dir>/corpora/<name>`, and the lock beside it."""

    home: Path
    name: str

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.home / self.name

    @property
    def manifest_file(self) -> Path:
        """The file whose replacement publishes a state."""
        return self.path / MANIFEST

    def read(self) -> Manifest | None:
        """The manifest; `None` if there is no corpus. `CorpusError` for a folder that this package did not create."""
        if not (self.path.exists() or self.path.is_symlink()):
            return None
        try:
            manifest = Manifest.model_validate_json(self.manifest_file.read_bytes())
        except FileNotFoundError:
            manifest = None
            if self._is_remnant():
                return None
        except (OSError, ValidationError):
            manifest = None
        if manifest is None or manifest.created_by != CREATED_BY or self.path.is_symlink():
            raise CorpusError(
                f"{str(self.path)!r} is not a corpus of {CREATED_BY} (it has no matching {MANIFEST}) and was left "
                "unchanged; move it away, or choose another corpus name."
            )
        return manifest

    def _is_remnant(self) -> bool:
        """Whether the folder holds only what an interrupted creation or removal left."""
        if self.path.is_symlink() or not self.path.is_dir():
            return False
        held = [one for one in self.path.iterdir() if one.name != f".{MANIFEST}"]
        return all(one.is_dir() and (one / MANIFEST).is_file() for one in held)

    def write(self, manifest: Manifest) -> None:
        """Publish: replace the manifest atomically and durably, then remove what no reader can want."""
        _write_text(self.manifest_file, manifest.model_dump_json(indent=2) + "\n")
        for one in self.path.iterdir():
            if one.is_dir() and one.name != manifest.generation:
                shutil.rmtree(one, ignore_errors=True)
        for index in sorted(self.indexes(manifest.generation), key=_edits)[:-_KEPT]:
            shutil.rmtree(index, ignore_errors=True)

    def start(self, manifest: Manifest) -> None:
        """Create the folder of a generation, which says itself what it is: a rebuild may be continued later."""
        (self.path / manifest.generation).mkdir(parents=True)
        _write_text(self.path / manifest.generation / MANIFEST, manifest.model_dump_json(indent=2) + "\n")

    def unfinished(self, like: Manifest, but: str | None) -> Manifest | None:
        """The manifest of an interrupted build of the same kind; others are removed."""
        found = None
        for one in self.path.iterdir() if self.path.is_dir() else ():
            if not one.is_dir() or one.name == but:
                continue
            try:
                begun = Manifest.model_validate_json((one / MANIFEST).read_bytes())
            except (OSError, ValidationError):
                begun = None
            if begun is not None and begun.built_like(like) and begun.dense_store == like.dense_store:
                found = begun
            else:
                shutil.rmtree(one, ignore_errors=True)
        return found

    def discard(self, generation: str) -> None:
        """Remove a generation that is not published."""
        shutil.rmtree(self.path / generation, ignore_errors=True)

    def catalogue(self, manifest: Manifest) -> Catalogue:
        """The catalogue of a generation. Raises `CorpusError` if a corpus with passages has lost it."""
        file = self.path / manifest.generation / FILE_NAME
        if manifest.passages and not (file.is_file() and file.stat().st_size):
            raise CorpusError(
                f"The catalogue of the corpus {manifest.name!r} is missing; rebuild the corpus with "
                f"`marag ingest PATH... --corpus {manifest.name} --rebuild`, or drop it."
            )
        return Catalogue(file, manifest.dimension)

    def index(self, manifest: Manifest) -> Path:
        """The folder with the derived files of a state."""
        return self.path / manifest.generation / f"index-{manifest.edits}-{manifest.dense_store}"

    def indexes(self, generation: str) -> Iterator[Path]:
        """The folders of all states of a generation that are there."""
        return (self.path / generation).glob("index-*")

    @asynccontextmanager
    async def locked(self, patience: float = _PATIENCE_SECONDS) -> AsyncIterator[None]:
        """Exclusive access, across processes, to edit this corpus; readers need none.

        Raises `CorpusError` if another process has it for longer than `patience` seconds. Locks end with their process.
        """
        until = time.monotonic() + patience
        lock = FileLock(self.home / f".{self.name}.lock", thread_local=False)
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            while True:
                try:
                    lock.acquire(blocking=False)
                    break
                except Timeout:
                    if time.monotonic() > until:
                        busy = "is being built or changed elsewhere; try again when that is done."
                        raise CorpusError(f"The corpus {self.name!r} {busy}") from None
                    await asyncio.sleep(_PAUSE_SECONDS)
        except OSError as error:
            raise CorpusError(f"{str(self.home)!r} cannot be written to; set MARAG_DATA_DIR. ({error})") from error
        try:
            yield
        finally:
            lock.release()

    def drop(self) -> None:
        """Remove the corpus; the manifest last, so that the remains of a kill are still identified."""
        for one in self.path.iterdir():
            if one.is_dir():
                shutil.rmtree(one)
        self.manifest_file.unlink(missing_ok=True)
        with suppress(OSError):  # a file that is not ours
            self.path.rmdir()


def corpus_folder(data_dir: Path, name: str) -> CorpusFolder:
    """The place of the corpus `name`. Raises `InputError` for an invalid name."""
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"{name!r} is not a valid corpus name; use 1 to 64 of a-z, 0-9, '.', '_' and '-', "
            "starting with a letter or digit."
        )
    return CorpusFolder(home=data_dir / "corpora", name=name)


class StoreNames(NamedTuple):
    """The dense and the lexical store of a corpus."""

    dense: str
    lexical: str


LOCATIONS = {"embedded": StoreNames("matrix", "tantivy"), "servers": StoreNames("qdrant", "elasticsearch")}


def chosen_stores(settings: Settings) -> StoreNames:
    """The stores of a new corpus: those in the settings, else the servers if both have an address.

    Raises `SettingsError` if only one has, or if one of the stores is on a server and the other is not, and
    `UnknownNameError`.
    """
    addresses = (settings.qdrant_url, settings.elasticsearch_url)
    if any(addresses) and not all(addresses):
        raise SettingsError("Only one of QDRANT_URL and ELASTICSEARCH_URL is set; set both, or neither.")
    known = discover_stores()
    stores = (
        named("dense store", settings.dense_store, known.dense) if settings.dense_store else None,
        named("lexical store", settings.lexical_store, known.lexical) if settings.lexical_store else None,
    )
    served = {store.served for store in stores if store is not None} or {all(addresses)}
    if len(served) > 1:
        raise SettingsError(
            f"DENSE_STORE is {settings.dense_store!r} and LEXICAL_STORE is {settings.lexical_store!r}, but one is "
            "on a server and the other in a folder; choose two of the same kind."
        )
    default = LOCATIONS["servers" if True in served else "embedded"]
    return StoreNames(settings.dense_store or default.dense, settings.lexical_store or default.lexical)


class OpenableStores(NamedTuple):
    """The two backends of a corpus, and where they find it."""

    dense: DenseBackend
    lexical: LexicalBackend
    dense_place: StorePlace
    lexical_place: StorePlace

    async def publish(self, dimension: int, changes: Changes) -> None:
        """Apply changes in both stores."""
        await self.lexical.publish(self.lexical_place, changes)
        await self.dense.publish(self.dense_place, dimension, changes)

    async def drop(self) -> None:
        """Remove both."""
        await self.dense.drop(self.dense_place)
        await self.lexical.drop(self.lexical_place)


def stores_of(
    settings: Settings, folder: CorpusFolder, manifest: Manifest, before: Path | None = None
) -> OpenableStores:
    """The stores of a state of a corpus. Raises `CorpusError` if one is not available, or has no address."""
    known = discover_stores()
    dense, lexical = known.dense.get(manifest.dense_store), known.lexical.get(manifest.lexical_store)
    if dense is None or lexical is None:
        names = f"{manifest.dense_store!r} and {manifest.lexical_store!r}"
        raise CorpusError(f"The corpus {manifest.name!r} needs the stores {names}, which are not both available here.")
    if dense.served and not (settings.qdrant_url and settings.elasticsearch_url):
        raise CorpusError(
            f"The indexes of the corpus {manifest.name!r} are on servers; set QDRANT_URL and ELASTICSEARCH_URL, "
            f"or bring it back with `marag corpora copy {manifest.name} --to embedded`."
        )
    index, name = folder.index(manifest), f"marag-{manifest.name}-{manifest.generation}"
    dense_place = StorePlace(
        folder=index,
        name=name,
        before=before,
        url=settings.qdrant_url,
        api_key=settings.qdrant_api_key,
        compressed=settings.qdrant_compressed,
    )
    lexical_place = StorePlace(
        folder=index, name=name, before=before, url=settings.elasticsearch_url, api_key=settings.elasticsearch_api_key
    )
    return OpenableStores(dense, lexical, dense_place, lexical_place)


async def publish(
    settings: Settings, folder: CorpusFolder, manifest: Manifest, catalogue: Catalogue, *, anew: bool = False
) -> Manifest:
    """Derive the index of the catalogue's contents and publish it; returns the new manifest. Call it under the lock.

    Only the difference to the published state is computed, unless the index must be made `anew`.
    """
    edits = await asyncio.to_thread(catalogue.edits)
    if edits == manifest.edits and not anew and folder.manifest_file.exists():
        return manifest
    documents, passages = await asyncio.to_thread(catalogue.counts)
    rows = await asyncio.to_thread(catalogue.rows)
    before = None if anew else _published_rows(folder.index(manifest))
    anew = anew or (before is None and manifest.edits > 0)
    old = np.zeros(0, dtype=np.int64) if before is None else before
    removed, added = np.setdiff1d(old, rows), np.setdiff1d(rows, old)
    last = int(rows[-1]) if len(rows) else manifest.last_row
    counted = {"documents": documents, "passages": passages, "edits": edits, "last_row": last}
    now = manifest.model_copy(update=counted)
    target = folder.index(now)
    stores = stores_of(settings, folder, now, None if before is None else folder.index(manifest))

    def parts() -> Iterator[Added]:
        return (Added(*part) for part in catalogue.parts(added))

    try:
        if target.exists():  # of a killed writer, or damaged
            await asyncio.to_thread(shutil.rmtree, target)
        target.mkdir(parents=True)
        if anew:
            await stores.drop()
        await stores.publish(now.dimension, Changes(removed=removed, added=added, parts=parts))
        np.save(target / _ROWS, rows)
        _write_text(target / _SIZES, json.dumps(_sizes(target)))
        await asyncio.to_thread(folder.write, now)
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise StorageError(
            f"{str(folder.path)!r} cannot be written ({error}); free disk space, or set MARAG_DATA_DIR to another disk."
        ) from error
    return now


def require_whole(index: Path) -> None:
    """Raise `DamagedIndexError` if a file of a published state is missing or has another size."""
    try:
        stated = json.loads((index / _SIZES).read_text(encoding="utf-8"))
        torn = [name for name, size in stated.items() if (index / name).stat().st_size != size]
    except (OSError, ValueError) as error:
        raise DamagedIndexError(f"The index {str(index)!r} is incomplete: {error}.") from error
    if torn:
        raise DamagedIndexError(f"The index {str(index)!r} is damaged: {torn[0]!r} has another size.")


def _sizes(index: Path) -> dict[str, int]:
    files = (file for file in index.rglob("*") if file.is_file() and file.suffix != ".lock")
    return {str(file.relative_to(index)): file.stat().st_size for file in files}


def _published_rows(index: Path) -> Rows | None:
    """The rows of a published state; `None` if its folder is lost."""
    try:
        rows: Rows = np.load(index / _ROWS)
    except (OSError, ValueError):
        return None
    return rows


def _edits(index: Path) -> int:
    return int(index.name.split("-")[1])


def _write_text(file: Path, text: str) -> None:
    unfinished = file.with_name(f".{file.name}")
    with unfinished.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.replace(file)

"""The places of a corpus's indexes: beside its catalogue, or on servers."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from ...discovery import named
from ...errors import CorpusError, DamagedIndexError, SettingsError, StorageError
from ...settings import Settings
from ..stores import DenseBackend, DenseStore, LexicalBackend, LexicalStore, discover_stores, ownership
from ..stores.protocols import StorePlace
from . import catalogue as catalogues
from .catalogue import Catalogue
from .manifest import BEING_EDITED, Manifest

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_TOGETHER = 2048
_SPARE_BYTES = 128_000_000


class StoreNames(NamedTuple):
    """The dense and the lexical store of a corpus."""

    dense: str
    lexical: str


LOCATIONS = {"embedded": StoreNames("qdrant-edge", "tantivy"), "servers": StoreNames("qdrant", "elasticsearch")}


def chosen_stores(settings: Settings) -> StoreNames:
    """The stores of a new corpus: those in the settings, else the servers if both have an address.

    Raises `SettingsError` if only one has, or if one of the stores is on a server and the other is not, and
    `UnknownNameError`.
    """
    addresses = (settings.qdrant_url, settings.elasticsearch_url)
    if any(addresses) and not all(addresses):
        raise SettingsError("Only one of QDRANT_URL and ELASTICSEARCH_URL is set; set both, or neither.")
    if settings.dense_store is None and settings.lexical_store is None:
        return LOCATIONS["servers" if all(addresses) else "embedded"]
    known = discover_stores()
    dense = None if settings.dense_store is None else named("dense store", settings.dense_store, known.dense)
    lexical = None if settings.lexical_store is None else named("lexical store", settings.lexical_store, known.lexical)
    served = {store.served for store in (dense, lexical) if store is not None}
    if len(served) > 1:
        raise SettingsError(
            f"DENSE_STORE is {settings.dense_store!r} and LEXICAL_STORE is {settings.lexical_store!r}, but one is "
            "on a server and the other in a folder; choose two of the same kind."
        )
    others = LOCATIONS["servers" if True in served else "embedded"]
    return StoreNames(dense.name if dense else others.dense, lexical.name if lexical else others.lexical)


def stores_at(location: str) -> StoreNames:
    """The stores named `embedded` or `servers`. Raises `UnknownNameError`."""
    return named("location", location, LOCATIONS)


def on_servers(manifest: Manifest) -> bool:
    """Can several processes read the corpus at once?"""
    store = discover_stores().dense.get(manifest.dense_store)
    return store is not None and store.served


class Indexed(NamedTuple):
    """A catalogue and its two indexes."""

    catalogue: Catalogue
    dense: DenseStore
    lexical: LexicalStore


@asynccontextmanager
async def opened(settings: Settings, folder: Path, manifest: Manifest, *, mend: bool = True) -> AsyncIterator[Indexed]:
    """The contents of `folder` and its indexes, closed at the end.

    With `mend`, a lost or damaged embedded index is rebuilt from the catalogue.
    """
    dense_backend, lexical_backend = backends(manifest)
    dense_place, lexical_place = places(settings, folder, manifest)
    require_catalogue(folder, manifest)
    require_room(settings, manifest)
    catalogue = await asyncio.to_thread(Catalogue, folder / catalogues.FILE_NAME, manifest.dimension)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, catalogue.close)

        def open_dense(place: StorePlace) -> AbstractAsyncContextManager[DenseStore]:
            return dense_backend.open(place, manifest.dimension)

        if not mend or on_servers(manifest):
            dense = await stack.enter_async_context(open_dense(dense_place))
            yield Indexed(catalogue, dense, await stack.enter_async_context(lexical_backend.open(lexical_place)))
            return
        held = _published(manifest, catalogue)
        dense, no_dense = await _whole(stack, open_dense, replace(dense_place, passages=held))
        lexical, no_lexical = await _whole(stack, lexical_backend.open, replace(lexical_place, passages=held))
        lost = [kind for kind, empty in (("dense", no_dense), ("lexical", no_lexical)) if empty]
        if lost and catalogue.counts()[1]:
            _LOG.warning(
                "The %s index of the corpus %r is missing or incomplete: rebuilding it.",
                *(" and ".join(lost), manifest.name),
            )
            await fill(catalogue, dense if no_dense else None, lexical if no_lexical else None)
        yield Indexed(catalogue, dense, lexical)


async def _whole(
    stack: AsyncExitStack, open_: Callable[[StorePlace], AbstractAsyncContextManager[T]], place: StorePlace
) -> tuple[T, bool]:
    """An opened embedded index, and whether it is now empty because it was missing or incomplete."""
    if _has_files(place.folder):
        try:
            return await stack.enter_async_context(open_(place)), False
        except DamagedIndexError as error:
            _LOG.debug("%s", error)
    await asyncio.to_thread(shutil.rmtree, place.folder, ignore_errors=True)
    return await stack.enter_async_context(open_(replace(place, passages=None))), True


def require_catalogue(folder: Path, manifest: Manifest) -> None:
    """Raise `CorpusError` for a corpus that has passages but has lost its catalogue."""
    file = folder / catalogues.FILE_NAME
    if manifest.passages and not (file.is_file() and file.stat().st_size):
        raise _lost_catalogue(manifest)


def _published(manifest: Manifest, catalogue: Catalogue) -> int | None:
    """The number of passages that each index must hold; `None` if uncertain.

    It is uncertain after an interrupted edit, which may have reached only one index, and if the
    catalogue has lost passages, which is logged: an index must not be rebuilt from fewer than it has.
    """
    held = catalogue.counts()[1]
    if manifest.checksum != BEING_EDITED and held != manifest.passages:
        if not held:
            raise _lost_catalogue(manifest)
        _LOG.warning(
            "The catalogue of the corpus %r has %d passages instead of %d; run `marag ingest` to restore the rest.",
            *(manifest.name, held, manifest.passages),
        )
        return None
    return None if catalogue.interrupted() else held


def _lost_catalogue(manifest: Manifest) -> CorpusError:
    return CorpusError(
        f"The catalogue of the corpus {manifest.name!r} is missing; rebuild the corpus with "
        f"`marag ingest PATH... --corpus {manifest.name} --rebuild`, or drop it."
    )


def require_room(settings: Settings, manifest: Manifest, passages: int = 0, *, bytes_: int = 0) -> None:
    """Raise `StorageError` if the disk has no room for an embedded index and the new passages or `bytes_`.

    The dense index writes to mapped memory: on a full disk, the system would kill the process.
    """
    if on_servers(manifest):
        return
    needed = _SPARE_BYTES + bytes_ + passages * (3 * 4 * manifest.dimension + 8192)
    free = shutil.disk_usage(settings.marag_data_dir).free
    if free < needed:
        raise StorageError(
            f"{str(settings.marag_data_dir)!r} has {free / 1e6:.0f} MB free, but the corpus {manifest.name!r} needs "
            f"{needed / 1e6:.0f} MB to work; free disk space, or set MARAG_DATA_DIR to another disk."
        )


async def dropped_stores(settings: Settings, folder: Path, manifest: Manifest) -> None:
    """Remove both indexes, wherever they are."""
    dense_backend, lexical_backend = backends(manifest)
    dense_place, lexical_place = places(settings, folder, manifest)
    await dense_backend.drop(dense_place)
    await lexical_backend.drop(lexical_place)


async def reach(settings: Settings) -> None:
    """Ask the servers, if new corpora go there, about one that does not exist. `CorpusError` if one does not answer."""
    stores = chosen_stores(settings)
    nothing = Manifest(
        name="nothing", encoder="none", dimension=1, chunker="none",
        dense_store=stores.dense, lexical_store=stores.lexical,
    )  # fmt: skip
    if on_servers(nothing):
        await dropped_stores(settings, settings.marag_data_dir / "nothing", nothing)


async def fill(
    catalogue: Catalogue,
    dense: DenseStore | None,
    lexical: LexicalStore | None,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Index everything in the catalogue in the given stores."""
    done, total = 0, catalogue.counts()[1]
    for passages, vectors in catalogue.everything(_TOGETHER):
        if dense is not None:
            await dense.update(passages, vectors)
        if lexical is not None:
            await lexical.update(passages)
        done += len(passages)
        if on_progress is not None:
            on_progress(done, total)


def _has_files(index: Path) -> bool:
    """Does the index have its files? Without them a search would silently find nothing."""
    return index.is_dir() and any(file.name != ownership.FILE_NAME for file in index.iterdir())


def backends(manifest: Manifest) -> tuple[DenseBackend, LexicalBackend]:
    """The store backends of a corpus. Raises `CorpusError` if one is not available."""
    known = discover_stores()
    if manifest.dense_store not in known.dense or manifest.lexical_store not in known.lexical:
        names = f"{manifest.dense_store!r} and {manifest.lexical_store!r}"
        raise CorpusError(f"The corpus {manifest.name!r} needs the stores {names}, which are not both available here.")
    return known.dense[manifest.dense_store], known.lexical[manifest.lexical_store]


def places(settings: Settings, folder: Path, manifest: Manifest) -> tuple[StorePlace, StorePlace]:
    """The places of the dense and the lexical index of a corpus in `folder`. `CorpusError` without an address."""
    if on_servers(manifest) and not (settings.qdrant_url and settings.elasticsearch_url):
        raise CorpusError(
            f"The indexes of the corpus {manifest.name!r} are on servers; set QDRANT_URL and ELASTICSEARCH_URL, "
            f"or bring it back with `marag corpora copy {manifest.name} --to embedded`."
        )
    name = f"marag-{manifest.name}-{manifest.generation}"
    dense = StorePlace(
        folder=folder / "dense",
        name=name,
        url=settings.qdrant_url,
        api_key=settings.qdrant_api_key,
        compressed=settings.qdrant_compressed,
    )
    lexical = StorePlace(
        folder=folder / "lexical", name=name, url=settings.elasticsearch_url, api_key=settings.elasticsearch_api_key
    )
    return dense, lexical

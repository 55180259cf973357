"""A corpus on disk: opening it for questions, listing, and dropping it.

Layout: `<data_dir>/corpora/<name>/{manifest.json, catalogue.sqlite, dense/, lexical/}`, or the two
indexes on servers. One process at a time edits a corpus, and any number read it: embedded indexes from their
own copies (`reading`). A folder, index or collection that this package did not create is never modified.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...errors import CorpusError
from ...settings import Settings
from ..stores import DenseStore, LexicalStore
from . import catalogue as catalogues
from .catalogue import Catalogue, DocumentRecord
from .editing import remove_published
from .folder import CorpusFolder, corpus_folder
from .locations import dropped_stores, on_servers, opened, require_catalogue
from .manifest import BEING_EDITED, FILE_NAME, FORMAT_VERSION, Manifest, read_manifest, require_format
from .reading import reading
from .sample import SAMPLE

__all__ = [
    "Corpus",
    "Manifest",
    "drop_corpus",
    "list_corpora",
    "open_catalogue",
    "open_corpus",
    "read_documents",
    "read_titles",
    "remove_documents",
    "require_corpus",
]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """An open corpus."""

    manifest: Manifest
    catalogue: Catalogue
    dense: DenseStore
    lexical: LexicalStore
    renew: Callable[[], Awaitable[None]] | None = None
    """Refreshes the view of an embedded corpus; to be called under its lock."""


def require_corpus(data_dir: Path, name: str, *, to_build: bool = True) -> None:
    """Raise the error of `open_corpus` for a missing corpus, before anything else is loaded.

    `sample` always exists, because it is built on first use. The message says how to build it only if `to_build`.
    """
    folder = corpus_folder(data_dir, name)
    if name != SAMPLE and not any(path.exists() for path in (folder.path, folder.replaced, folder.building)):
        raise CorpusError(_missing(folder, to_build=to_build))


@asynccontextmanager
async def open_corpus(settings: Settings, name: str, encoder_name: str, dimension: int) -> AsyncIterator[Corpus]:
    """Open the corpus `name` for questions encoded by `encoder_name`, and close it afterwards.

    An interrupted edit is completed first, and a lost index is rebuilt. Raises
    `CorpusError` if the corpus does not exist, is empty, is being edited elsewhere, or was built with another encoder.
    """
    folder = corpus_folder(settings.marag_data_dir, name)
    async with AsyncExitStack() as stack:
        manifest = await asyncio.to_thread(_known, folder)
        require_format(manifest)
        _require_encoder(manifest, encoder_name, dimension)
        if on_servers(manifest):
            indexed = await stack.enter_async_context(opened(settings, folder.path, manifest))
            corpus = Corpus(
                manifest=manifest, catalogue=indexed.catalogue, dense=indexed.dense, lexical=indexed.lexical
            )
        else:
            manifest, reader = await stack.enter_async_context(reading(settings, folder))
            catalogue = await asyncio.to_thread(Catalogue, folder.path / catalogues.FILE_NAME, manifest.dimension)
            stack.callback(catalogue.close)
            corpus = Corpus(
                manifest=manifest, catalogue=catalogue, dense=reader.dense, lexical=reader.lexical, renew=reader.renew
            )
        if not corpus.catalogue.counts()[1]:
            raise CorpusError(
                f"The corpus {name!r} contains no passages yet; `marag ingest` continues where it stopped."
            )
        yield corpus


def list_corpora(data_dir: Path) -> tuple[Manifest, ...]:
    """The manifests of all corpora, by name; other folders are skipped."""
    files = sorted((data_dir / "corpora").glob(f"[!.]*/{FILE_NAME}"))
    manifests = []
    for file in files:
        try:
            manifests.append(_counted(file.parent, read_manifest(file.parent)))
        except CorpusError:
            continue
    return tuple(manifests)


def _counted(folder: Path, manifest: Manifest) -> Manifest:
    """The manifest with current counts if an edit is in progress or was interrupted."""
    file = folder / catalogues.FILE_NAME
    if manifest.checksum != BEING_EDITED or manifest.format_version != FORMAT_VERSION or not file.is_file():
        return manifest
    with closing(Catalogue(file, manifest.dimension)) as catalogue:
        documents, passages = catalogue.counts()
    return manifest.model_copy(update={"documents": documents, "passages": passages})


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
    if not (folder.path.exists() or folder.path.is_symlink()):
        raise CorpusError(_missing(folder))
    manifest = require_format(read_manifest(folder.path))
    require_catalogue(folder.path, manifest)
    with closing(Catalogue(folder.path / catalogues.FILE_NAME, manifest.dimension)) as catalogue:
        yield catalogue


async def drop_corpus(settings: Settings, name: str) -> Manifest:
    """Remove the corpus `name` with its indexes; returns its manifest.

    Raises `CorpusError` if it does not exist, was not created by this package, or is in use.
    """
    async with locked_corpus(settings, name) as (folder, manifest):
        if on_servers(manifest):
            await dropped_stores(settings, folder.path, manifest)
        await asyncio.to_thread(folder.drop)
    return manifest


async def remove_documents(settings: Settings, name: str, doc_ids: Sequence[str]) -> None:
    """Remove documents of the corpus `name` from catalogue and indexes; unknown ids are ignored.

    Raises `CorpusError` if the corpus does not exist or is in use.
    """
    async with locked_corpus(settings, name) as (folder, manifest):
        require_format(manifest)
        async with opened(settings, folder.path, manifest) as indexed:
            await remove_published(folder.path, manifest, indexed, doc_ids)


@asynccontextmanager
async def locked_corpus(settings: Settings, name: str) -> AsyncIterator[tuple[CorpusFolder, Manifest]]:
    """The place and the manifest of a corpus, with exclusive editing rights. Raises `CorpusError`."""
    folder = corpus_folder(settings.marag_data_dir, name)
    if not await asyncio.to_thread(folder.home.is_dir):
        raise CorpusError(_missing(folder))
    async with folder.locked():
        manifest = await asyncio.to_thread(folder.existing)
        if manifest is None:
            raise CorpusError(_missing(folder))
        yield folder, manifest


def _known(folder: CorpusFolder) -> Manifest:
    """The manifest, even after an interrupted replacement of the corpus, which a reader repairs."""
    for path in (folder.path, folder.replaced):
        if path.exists() or path.is_symlink():
            return read_manifest(path)
    raise CorpusError(_missing(folder))


def _require_encoder(manifest: Manifest, encoder_name: str, dimension: int) -> None:
    built, given = (manifest.encoder, manifest.dimension), (encoder_name, dimension)
    if built != given:
        raise CorpusError(
            f"The corpus {manifest.name!r} was built with the encoder {built[0]!r} ({built[1]} dimensions), not with "
            f"{given[0]!r} ({given[1]}); set ENCODER={built[0]}, or rebuild it with "
            f"`marag ingest PATH... --corpus {manifest.name} --rebuild`."
        )


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

"""Edits of a corpus: documents are added, changed and removed, each completely or not at all."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from ...errors import CorpusError, InputError
from ...settings import Settings
from ..batching import AsyncEncoder
from ..passage import Passage
from .catalogue import AT_ONCE, Catalogue, DocumentRecord
from .folder import CorpusFolder, corpus_folder
from .locations import Indexed, chosen_stores, dropped_stores, on_servers, opened, require_room
from .manifest import BEING_EDITED, FORMAT_VERSION, Manifest, passages_checksum, write_manifest

__all__ = [
    "CorpusEditor",
    "Progress",
    "counted",
    "edit_corpus",
    "edited",
    "ensure_corpus",
    "finish_interrupted",
    "remove_published",
    "require_built_alike",
]

UNCHUNKED = "none"
_SORTED_TOGETHER = 4096
ENCODED_TOGETHER = 512
Progress: TypeAlias = Callable[[int, int], None]


class CorpusEditor:
    """Adds documents to a corpus; get one from `edit_corpus`. For one task at a time.

    Passages are encoded and documents published in groups, so that an interruption costs little;
    everything is published when the context ends without an error.
    """

    def __init__(
        self,
        indexed: Indexed,
        encoder: AsyncEncoder,
        on_progress: Progress | None,
        require_room: Callable[[int], None],
        encoded_together: int = ENCODED_TOGETHER,
    ) -> None:
        self._indexed = indexed
        self._catalogue = indexed.catalogue
        self._encoder = encoder
        self._on_progress = on_progress
        self._require_room = require_room
        self._encoded_together = encoded_together
        self._encoded = 0
        self._wanted = 0
        self._unpublished = 0

    def documents(self) -> tuple[DocumentRecord, ...]:
        """The published documents, by source."""
        return self._catalogue.documents()

    def taken(self, document: str, passages: Iterable[Passage]) -> tuple[str, str] | None:
        """The first id of a passage that another document already has, with that document's id."""
        left = iter(passages)
        while ids := [passage.id for passage in islice(left, AT_ONCE)]:
            owners = self._catalogue.owners(ids)
            foreign = next((id_ for id_ in ids if owners.get(id_, document) != document), None)
            if foreign is not None:
                return foreign, owners[foreign]
        return None

    async def put(self, document: DocumentRecord, passages: Collection[Passage]) -> None:
        """Add or replace `document`: afterwards it has exactly these passages.

        They are iterated several times, and may be too many for memory. Raises `InputError` if two of them have the
        same id, or one belongs to another document.
        """
        await asyncio.to_thread(self._check, document, passages)
        self._wanted += await asyncio.to_thread(self._catalogue.stage, document, passages)
        self._unpublished += len(passages)
        if self._wanted - self._encoded >= _SORTED_TOGETHER or self._unpublished >= AT_ONCE:
            await self.publish()

    async def remove(self, doc_ids: Sequence[str]) -> None:
        """Remove these documents with their passages; unknown ids are ignored."""
        gone = set(doc_ids)
        for document in self.documents():
            if document.id in gone:
                await asyncio.to_thread(self._catalogue.stage, document, (), removal=True)

    async def publish(self) -> None:
        """Encode passages without a vector, and publish everything. `StorageError` if the disk is too full."""
        self._require_room(self._unpublished)
        while waiting := await asyncio.to_thread(self._catalogue.unencoded, _SORTED_TOGETHER):
            await self._encode(waiting)
        await publish(self._indexed, await asyncio.to_thread(self._catalogue.complete))
        self._unpublished = 0

    async def _encode(self, waiting: Sequence[Passage]) -> None:
        """Encode sorted by length, so that a batch has little padding; each batch is stored at once."""
        ordered = sorted(waiting, key=lambda passage: len(passage.text))
        for start in range(0, len(ordered), self._encoded_together):
            part = ordered[start : start + self._encoded_together]
            vectors = await self._encoder.passages([passage.searchable() for passage in part])
            await asyncio.to_thread(self._catalogue.add_vectors, [passage.id for passage in part], vectors)
            self._encoded += len(part)
            if self._on_progress is not None:
                self._on_progress(self._encoded, self._wanted)

    def _check(self, document: DocumentRecord, passages: Iterable[Passage]) -> None:
        taken = self.taken(document.id, passages)
        if taken is not None:
            raise InputError(
                f"The passage id {taken[0]!r} already belongs to the document {taken[1]!r}; choose another id."
            )


@asynccontextmanager
async def edit_corpus(
    settings: Settings,
    name: str,
    encoder: AsyncEncoder,
    *,
    chunker: str,
    rebuild: bool = False,
    on_progress: Progress | None = None,
) -> AsyncIterator[CorpusEditor]:
    """Edit the corpus `name`, which is created if missing.

    `on_progress(done, wanted)` counts encoded passages. With `rebuild` the corpus is built from
    scratch, and the earlier one is kept until the new one is complete. Raises `CorpusError` if it was built
    with another encoder or chunker (without `rebuild`), is in use elsewhere, or was not created by this package.
    """
    folder = corpus_folder(settings.marag_data_dir, name)
    async with (
        folder.locked(),
        _editor(settings, folder, encoder, chunker=chunker, rebuild=rebuild, on_progress=on_progress) as editor,
    ):
        yield editor


async def ensure_corpus(
    settings: Settings,
    name: str,
    passages: Sequence[Passage],
    encoder: AsyncEncoder,
    *,
    replace: bool = False,
    on_progress: Progress | None = None,
) -> Manifest:
    """The corpus `name` over exactly these passages, none of which is split; reused if it exists.

    Raises `CorpusError` if it was built differently (without `replace`) or is in use, `InputError` for an
    invalid name, no passages, or duplicate passage ids.
    """
    if not passages:
        raise InputError("There are no passages to build a corpus from; give at least one document with text.")
    folder = corpus_folder(settings.marag_data_dir, name)
    checksum = await asyncio.to_thread(passages_checksum, passages)
    fresh = await _new(settings, name, encoder, UNCHUNKED)
    there = await asyncio.to_thread(folder.published)
    if there is not None and _built_alike(there, fresh) and there.checksum == checksum:
        return there  # without the lock, for which simultaneous starts would queue
    async with folder.locked():
        existing = await asyncio.to_thread(folder.existing)
        same = existing is not None and _built_alike(existing, fresh)
        if existing is not None and same and existing.checksum == checksum:
            return existing
        if existing is not None and not replace and existing.passages:
            raise CorpusError(
                f"The corpus {name!r} was built from other passages, or with another encoder ({existing.encoder!r}) "
                "or chunker; replace it explicitly, or choose another name."
            )
        whole = DocumentRecord(id=name, source=name, title=name, kind="passages", content_hash=checksum)
        async with _editor(
            settings, folder, encoder, chunker=UNCHUNKED, rebuild=not same, on_progress=on_progress
        ) as editor:
            await editor.remove([document.id for document in editor.documents() if document.id != name])
            await editor.put(whole, passages)
        manifest = await asyncio.to_thread(folder.existing)
        assert manifest is not None
        return manifest


async def publish(indexed: Indexed, documents: Sequence[str]) -> None:
    """Write complete documents to the indexes. Can be repeated at any time after an interruption."""
    catalogue, dense, lexical = indexed
    for group in await asyncio.to_thread(catalogue.grouped, documents, AT_ONCE):
        removed = await asyncio.to_thread(catalogue.publishing, group)
        parts = catalogue.staged(group)
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            await lexical.update(part.passages, removed=removed)
            await dense.update(part.passages, part.vectors, removed=removed)
            removed = ()
        await asyncio.to_thread(catalogue.published, group)


async def remove_published(path: Path, manifest: Manifest, indexed: Indexed, doc_ids: Sequence[str]) -> None:
    """Remove published documents of a corpus that is open under its lock; no encoder is needed.

    `path` is the corpus's folder. Unknown ids are ignored, and documents staged by another edit are kept.
    """
    catalogue = indexed.catalogue
    await asyncio.to_thread(write_manifest, path, manifest.model_copy(update={"checksum": BEING_EDITED}))
    try:
        await publish(indexed, await asyncio.to_thread(catalogue.interrupted))
        gone = [document for document in catalogue.documents() if document.id in set(doc_ids)]
        for document in gone:
            await asyncio.to_thread(catalogue.stage, document, (), removal=True)
        await publish(indexed, [document.id for document in gone])
    finally:
        await asyncio.to_thread(lambda: write_manifest(path, counted(manifest, catalogue)))


async def finish_interrupted(manifest: Manifest, indexed: Indexed) -> Manifest:
    """Complete an interrupted edit; returns the corrected manifest. Call it under the lock."""
    interrupted = await asyncio.to_thread(indexed.catalogue.interrupted)
    await publish(indexed, interrupted)
    if not interrupted and manifest.checksum != BEING_EDITED:
        return manifest
    return await asyncio.to_thread(counted, manifest, indexed.catalogue)


@asynccontextmanager
async def edited(
    settings: Settings,
    path: Path,
    manifest: Manifest,
    indexed: Indexed,
    encoder: AsyncEncoder,
    *,
    on_progress: Progress | None = None,
    encoded_together: int = ENCODED_TOGETHER,
) -> AsyncIterator[CorpusEditor]:
    """An edit of an open corpus, published at its end; completes an interrupted one first. Call it under the lock."""
    await asyncio.to_thread(write_manifest, path, manifest.model_copy(update={"checksum": BEING_EDITED}))
    try:
        await publish(indexed, await asyncio.to_thread(indexed.catalogue.interrupted))
        await asyncio.to_thread(indexed.catalogue.begin)
        room = partial(require_room, settings, manifest)
        editor = CorpusEditor(indexed, encoder, on_progress, room, encoded_together)
        yield editor
        await editor.publish()
        await asyncio.to_thread(indexed.catalogue.forget_stale)
    finally:
        write_manifest(path, counted(manifest, indexed.catalogue))


@asynccontextmanager
async def _editor(
    settings: Settings,
    folder: CorpusFolder,
    encoder: AsyncEncoder,
    *,
    chunker: str,
    rebuild: bool,
    on_progress: Progress | None,
) -> AsyncIterator[CorpusEditor]:
    fresh = await _new(settings, folder.name, encoder, chunker)
    existing = await asyncio.to_thread(folder.existing)
    replacing = existing is not None and rebuild
    if replacing:
        path, manifest = await _rebuilding(settings, folder, fresh)
    elif existing is None:
        await asyncio.to_thread(folder.start, fresh)
        await asyncio.to_thread(folder.install)
        path, manifest = folder.path, fresh
    else:
        require_built_alike(existing, fresh)
        path, manifest = folder.path, existing
    held = existing is not None
    try:
        async with opened(settings, path, manifest) as indexed:
            try:
                async with edited(
                    settings, path, manifest, indexed, encoder, on_progress=on_progress,
                ) as editor:  # fmt: skip
                    yield editor
            finally:
                held = held or not indexed.catalogue.is_empty()
    finally:
        if not held:  # without content: leave no empty corpus behind
            await _forsaken(settings, folder, manifest)
    if existing is not None and replacing:
        if on_servers(existing):
            await dropped_stores(settings, folder.path, existing)
        await asyncio.to_thread(folder.install)


async def _forsaken(settings: Settings, folder: CorpusFolder, manifest: Manifest) -> None:
    """Remove what was created for an empty corpus; servers that do not respond hold nothing of it."""
    if on_servers(manifest):
        with suppress(CorpusError):
            await dropped_stores(settings, folder.path, manifest)
    await asyncio.to_thread(folder.drop)


async def _rebuilding(settings: Settings, folder: CorpusFolder, fresh: Manifest) -> tuple[Path, Manifest]:
    """The folder of a rebuild, continuing an interrupted one of the same kind."""
    begun = await asyncio.to_thread(folder.unfinished)
    if begun is not None and _built_alike(begun, fresh):
        return folder.building, begun
    if begun is not None and on_servers(begun):
        await dropped_stores(settings, folder.building, begun)
    await asyncio.to_thread(folder.start, fresh)
    return folder.building, fresh


def counted(manifest: Manifest, catalogue: Catalogue) -> Manifest:
    """The manifest with the currently published counts."""
    documents, passages = catalogue.counts()
    now = {"documents": documents, "passages": passages, "checksum": catalogue.checksum()}
    return manifest.model_copy(update=now)


async def _new(settings: Settings, name: str, encoder: AsyncEncoder, chunker: str) -> Manifest:
    stores = chosen_stores(settings)
    dimension = await encoder.dimension()
    return Manifest(
        name=name, encoder=encoder.name, dimension=dimension, chunker=chunker,
        dense_store=stores.dense, lexical_store=stores.lexical,
    )  # fmt: skip


def _built_alike(left: Manifest, right: Manifest) -> bool:
    def key(manifest: Manifest) -> tuple[object, ...]:
        return manifest.format_version, manifest.encoder, manifest.dimension, manifest.chunker

    return key(left) == key(right)


def require_built_alike(existing: Manifest, fresh: Manifest) -> None:
    """Raise `CorpusError` if a corpus was built with another encoder, chunker or format."""
    if not _built_alike(existing, fresh):
        was = f"the encoder {existing.encoder!r} ({existing.dimension} dimensions) and the chunker {existing.chunker!r}"
        if existing.format_version != FORMAT_VERSION:
            was = f"format {existing.format_version}, {was}"
        raise CorpusError(
            f"The corpus {existing.name!r} was built with {was}, not with {fresh.encoder!r} "
            f"({fresh.dimension}) and {fresh.chunker!r}; "
            f"set those again, or rebuild it: `marag ingest PATH... --corpus {existing.name} --rebuild`."
        )

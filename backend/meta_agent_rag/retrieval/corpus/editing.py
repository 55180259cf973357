"""Edits of a corpus: documents are added, changed and removed, each completely or not at all.

    async with edit_corpus(settings, "mine", encoder, chunker="none") as editor:
        await editor.put(document, passages)
        await editor.remove(["another"])

What is put is encoded and committed to the catalogue every few thousand passages, and at `publish`; readers see
all of it once the block ends.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from hashlib import sha256
from itertools import chain
from typing import TypeAlias

from ...errors import InputError
from ...settings import Settings
from ..batching import AsyncEncoder
from ..passage import Passage, to_record
from .catalogue import AT_ONCE, ROWS, Catalogue, DocumentRecord, in_parts
from .corpus import Manifest, corpus_folder, drop_stores, publish, require_alike, stores_for

Progress: TypeAlias = Callable[[int, int], None]
UNCHUNKED = "none"
_TOGETHER, _TOGETHER_SHARED = 512, 16
"""The most passages that a question waits for if the encoder is shared."""
_PATIENCE_SECONDS, _PATIENCE_SHARED_SECONDS = 3.0, 60.0


class CorpusEditor:
    """Adds documents to a corpus; get one from `edit_corpus`. For one task at a time."""

    def __init__(
        self, catalogue: Catalogue, encoder: AsyncEncoder, on_progress: Progress | None, *, together: int
    ) -> None:
        self._catalogue = catalogue
        self._encoder = encoder
        self._on_progress = on_progress
        self._together = together
        self._put: dict[str, tuple[DocumentRecord, Collection[Passage]]] = {}
        self._removed: dict[str, None] = {}
        self._owners: dict[str, str] = {}
        self._encoded = 0
        self._wanted = 0

    def documents(self) -> tuple[DocumentRecord, ...]:
        """The committed documents, by source."""
        return self._catalogue.documents()

    def taken(self, document: str, passages: Iterable[Passage]) -> tuple[str, str] | None:
        """The first id of a passage that another document already has, with that document's id."""
        leaving = self._removed.keys() | self._put.keys()
        for part in in_parts(passages, AT_ONCE):
            ids = [passage.id for passage in part]
            owners = {id_: owner for id_, owner in self._catalogue.owners(ids).items() if owner not in leaving}
            owners |= {id_: self._owners[id_] for id_ in ids if id_ in self._owners}
            foreign = next((id_ for id_ in ids if owners.get(id_, document) != document), None)
            if foreign is not None:
                return foreign, owners[foreign]
        return None

    async def put(self, document: DocumentRecord, passages: Collection[Passage]) -> None:
        """Add or replace `document`: afterwards it has exactly these passages.

        They are iterated several times, and may be too many for memory. Raises `InputError`, here or at `publish`, if
        the id of one is taken.
        """
        self._put[document.id] = (document, passages)
        if sum(len(held) for _, held in self._put.values()) >= AT_ONCE:
            await self.publish()
        else:
            self._owners |= {passage.id: document.id for passage in passages}

    async def remove(self, doc_ids: Sequence[str]) -> None:
        """Remove these documents with their passages; unknown ids are ignored."""
        for id_ in doc_ids:
            self._put.pop(id_, None)
            self._removed[id_] = None

    async def publish(self) -> None:
        """Encode what has no vector yet, and commit everything to the catalogue at once."""
        put, removed = list(self._put.values()), list(self._removed)
        if not put and not removed:
            return
        waiting = self._catalogue.unencoded(chain.from_iterable(passages for _, passages in put))
        while (texts := await asyncio.to_thread(next, waiting, None)) is not None:
            self._wanted += len(texts)
            # sorted by length, so that a batch has little padding; each batch is stored at once
            for part in in_parts(sorted(texts.items(), key=lambda one: len(one[1])), self._together):
                vectors = await self._encoder.passages([text for _, text in part])
                await asyncio.to_thread(self._catalogue.add_vectors, [digest for digest, _ in part], vectors)
                self._encoded += len(part)
                if self._on_progress is not None:
                    self._on_progress(self._encoded, self._wanted)
        await asyncio.to_thread(self._catalogue.replace, put, removed)
        for pending in (self._put, self._removed, self._owners):
            pending.clear()


@asynccontextmanager
async def edit_corpus(
    settings: Settings,
    name: str,
    encoder: AsyncEncoder,
    *,
    chunker: str,
    rebuild: bool = False,
    shared: bool = False,
    on_progress: Progress | None = None,
) -> AsyncIterator[CorpusEditor]:
    """Edit the corpus `name`, which is created if missing, and publish the result.

    `on_progress(done, wanted)` counts encoded passages. With `rebuild` the corpus is built from
    scratch, and the earlier one is kept until the new one is complete; an interrupted rebuild begins again. `shared`
    means that the encoder also answers questions, and that another edit is waited for. After an error, what was
    committed before it is published by the next one who edits or opens the corpus. Raises `CorpusError` if the corpus
    was built with another encoder or chunker (without `rebuild`), is being edited elsewhere, or was not created by this
    package.
    """
    folder = corpus_folder(settings.marag_data_dir, name)
    dimension, stores = await encoder.dimension(), stores_for(settings)
    async with folder.locked(_PATIENCE_SHARED_SECONDS if shared else _PATIENCE_SECONDS):
        existing = await asyncio.to_thread(folder.read)
        manifest = Manifest(name=name, encoder=encoder.name, dimension=dimension, chunker=chunker, stores=stores)
        if existing is None:
            await drop_stores(settings, folder, manifest)  # a server that does not respond says so now
            await asyncio.to_thread(folder.write, manifest)
        elif not rebuild:
            require_alike(existing, encoder.name, dimension, chunker)
            manifest = existing
        with closing(folder.catalogue(manifest)) as catalogue:
            editor = CorpusEditor(catalogue, encoder, on_progress, together=_TOGETHER_SHARED if shared else _TOGETHER)
            yield editor
            await editor.publish()
            if not shared:
                await asyncio.to_thread(catalogue.forget_unused)
            filled = manifest.edits or catalogue.counts() != (0, 0)
            if filled:
                await publish(settings, folder, manifest, catalogue)
        if existing is None and not filled:
            await asyncio.to_thread(folder.drop)
        elif existing is not None and filled and existing.generation != manifest.generation:
            await drop_stores(settings, folder, existing)


async def ensure_corpus(
    settings: Settings,
    name: str,
    passages: Sequence[Passage] | Callable[[], Sequence[Passage]],
    encoder: AsyncEncoder,
    *,
    checksum: str = "",
    on_progress: Progress | None = None,
) -> Manifest:
    """The corpus `name` over exactly these passages, none of which is split; reused if it exists, else replaced.

    With a `checksum` of what the passages are made from, they are made only if the corpus is to be built. Raises
    `CorpusError` if it is being edited, `InputError` for an invalid name, no passages, or duplicate passage ids.
    """
    if not passages:
        raise InputError("There are no passages to build a corpus from; give at least one document with text.")
    folder = corpus_folder(settings.marag_data_dir, name)
    checksum = checksum or await asyncio.to_thread(_checksum, passages() if callable(passages) else passages)
    existing = await asyncio.to_thread(folder.read)
    recipe = (encoder.name, await encoder.dimension(), UNCHUNKED)
    alike = existing is not None and (existing.encoder, existing.dimension, existing.chunker) == recipe
    if existing is not None and alike:
        with closing(folder.catalogue(existing)) as catalogue:
            held = [(document.id, document.content_hash) for document in catalogue.documents()]
            if held == [(name, checksum)] and catalogue.edits() == existing.edits:
                return existing  # without the lock, for which simultaneous starts would queue
    async with edit_corpus(
        settings, name, encoder, chunker=UNCHUNKED, rebuild=existing is not None and not alike, on_progress=on_progress
    ) as editor:
        held = [(document.id, document.content_hash) for document in editor.documents()]
        if held != [(name, checksum)]:  # another process may have been first
            await editor.remove([id_ for id_, _ in held if id_ != name])
            whole = DocumentRecord(id=name, source=name, title=name, kind=ROWS, content_hash=checksum)
            await editor.put(whole, passages() if callable(passages) else passages)
    return await asyncio.to_thread(folder.existing)


def _checksum(passages: Iterable[Passage]) -> str:
    """SHA-256 over ids and contents, independent of the order of passages."""
    digests = sorted(sha256(to_record(passage).encode()).digest() for passage in passages)
    return sha256(b"".join(digests)).hexdigest()

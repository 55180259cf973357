"""Adds uploaded documents to their corpora, a few at a time, while questions are answered."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ...errors import CorpusError, RequestError
from ...ingestion.chunkers import prepared
from ...ingestion.parsers import known_suffixes
from ...ingestion.pipeline import chunking_options, take_in
from ...ingestion.report import FileOutcome
from ...ingestion.sources import FoundFile, source_name
from ...retrieval.corpus.live import edit_live
from ...retrieval.corpus.sample import SAMPLE
from ...retrieval.hybrid import HybridRetriever, Retriever
from ...settings import Settings
from ..access.limits import ConcurrencyLimit
from ..failures import refusal
from ..metrics import Metrics
from ..request_record import Client
from .receiving import UploadLimits
from .records import UNFINISHED, Upload, UploadFolder

_LOG = logging.getLogger(__name__)
_AT_ONCE = 8
_MOST_WAITING = 200
_REMEMBERED_DAYS = 90
_PAUSES_SECONDS = (2.0, 15.0)
_TOGETHER = 16
"""The number of documents of one corpus that one process reads and publishes together."""
_NOT_TAKEN = "The corpus cannot accept documents at the moment; tell the operator this id."
_KNOWN_ALREADY = "The corpus already has this content under another name."


@dataclass(kw_only=True)
class Intake:
    """The pending documents, oldest first; `places` limits concurrent uploads."""

    settings: Settings
    retrievers: Mapping[str, Retriever]
    metrics: Metrics
    folder: UploadFolder
    limits: UploadLimits
    suffixes: tuple[str, ...]
    places: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(limit=_AT_ONCE))
    _waiting: list[Upload] = field(default_factory=list, repr=False)
    _failures: dict[str, int] = field(default_factory=dict, repr=False)
    _resting: set[str] = field(default_factory=set, repr=False)
    _parsing: dict[str, Upload] = field(default_factory=dict, repr=False)
    _new: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _editing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    def corpus(self, name: str | None) -> str:
        """The requested corpus, if it accepts documents. Raises `RequestError`."""
        wanted = name or next(iter(self.retrievers), "")
        retriever = self.retrievers.get(wanted)
        if retriever is None:
            known = ", ".join(self.retrievers)
            raise RequestError(404, "unknown_corpus", f"The corpus {wanted!r} is not served; choose from: {known}.")
        if wanted == SAMPLE or not isinstance(retriever, HybridRetriever):
            raise RequestError(409, "read_only", f"The corpus {wanted!r} does not accept documents; name another one.")
        if len(self._waiting) >= _MOST_WAITING:
            words = "Too many documents are waiting to be read; send more later."
            raise RequestError(503, "overloaded", words, retry_after=30)
        return wanted

    def accept(self, files: Sequence[Path], client: Client, corpus: str, at: float) -> list[Upload]:
        """Queue files that have arrived."""
        uploads = [
            Upload(id=file.parent.name, client_id=client.id, corpus=corpus, name=file.name, at=at) for file in files
        ]
        for upload, file in zip(uploads, files, strict=True):
            self.folder.accept(file.parent, upload)
            self._wait_for_turn(upload)
        return uploads

    def status(self, id_: str, client_id: str) -> Upload | None:
        """The state of a document of this client."""
        upload = self._parsing.get(id_) or self.folder.read(id_)
        return upload if upload is not None and upload.client_id == client_id else None

    def sent(self, client_id: str) -> list[Upload]:
        """The documents that a client sent and has not deleted, the latest first."""
        found = (self._parsing.get(upload.id, upload) for upload in self.folder.of(client_id))
        kept = [upload for upload in found if upload.state != "deleted"]
        return sorted(kept, key=lambda upload: (upload.at, upload.id), reverse=True)

    async def delete(self, id_: str, client_id: str, *, patience: float) -> Upload | None:
        """Remove a document of this client from its corpus, with the original; idempotent. `None` if unknown.

        Raises `RequestError`: 409 while it is being read, or for the last document of a corpus; 503 if the corpus
        is still being edited after `patience` seconds.
        """
        try:
            async with asyncio.timeout(patience):
                await self._editing.acquire()
        except TimeoutError:
            words = "The corpus is being changed at the moment; delete the document later."
            raise RequestError(503, "overloaded", words, retry_after=30) from None
        try:
            upload = await asyncio.to_thread(self.status, id_, client_id)
            if upload is None or upload.state == "deleted":
                return upload
            if upload.state == "parsing":
                raise RequestError(409, "in_progress", "The document is being read; delete it once it is indexed.")
            if upload.state == "indexed" and not await asyncio.to_thread(self.folder.is_replaced, upload):
                await self._removed(upload)
            self._waiting = [other for other in self._waiting if other.id != id_]
            gone = replace(upload, state="deleted", message=None, passages=0)
            await asyncio.to_thread(self.folder.settle, gone)
            return gone
        finally:
            self._editing.release()

    async def _removed(self, upload: Upload) -> None:
        """Remove an indexed document from its corpus; a copy of its content is then indexed in its own right."""
        retriever = self.retrievers.get(upload.corpus)
        if not isinstance(retriever, HybridRetriever):
            raise RequestError(404, "unknown_corpus", f"The corpus {upload.corpus!r} is not served.")
        original = self.folder.original(upload)
        source = source_name(original.resolve())
        documents = await asyncio.to_thread(retriever.corpus.catalogue.documents)
        gone = [document.id for document in documents if document.source == source]
        options = await asyncio.to_thread(chunking_options, self.settings, retriever.encoder.name)
        edit = partial(edit_live, self.settings, retriever.corpus, retriever.encoder, chunker=prepared(options).name)
        copies = await asyncio.to_thread(self._copies, upload.corpus, retriever, {source: upload}) if gone else []
        if gone and len(documents) == 1 and not copies:
            words = f"The corpus {upload.corpus!r} has no other document; add one before you delete this one."
            raise RequestError(409, "last_document", words)
        await asyncio.to_thread(original.unlink, missing_ok=True)  # first: without a document it would be read again
        if gone:
            async with edit() as editor:
                await editor.remove(gone)
        if copies:
            await take_in(self.settings, copies, options, edit())

    def resume(self) -> None:
        """Continue the uploads of an earlier process; old finished ones are no longer reported."""
        self.folder.clear(older_than_seconds=self.limits.seconds)
        for upload in self.folder.waiting():
            if upload.state in UNFINISHED:
                self._wait_for_turn(upload)
            else:
                self.folder.settle(upload)
        self.folder.forget(older_than_seconds=_REMEMBERED_DAYS * 86_400)

    async def keep_taking(self) -> None:
        """Process waiting uploads until cancelled; a failing document does not hold up others."""
        while True:
            await self._new.wait()
            group = self._next()
            if not group:
                self._new.clear()
                continue
            self._parsing = {upload.id: replace(upload, state="parsing") for upload in group}
            async with self._editing:
                await self._take(group)
            self._parsing = {}

    async def _take(self, group: Sequence[Upload]) -> None:
        try:
            ended = await self._taken(list(self._parsing.values()))
        except CorpusError as error:
            ended = self._put_off(group, error)
        except Exception as error:  # noqa: BLE001  # in any case, the next ones are processed
            _LOG.error("The uploads %s failed: %s: %s", list(self._parsing), type(error).__name__, error)
            ended = [replace(upload, state="failed", message=str(refusal(error))) for upload in group]
        for upload in ended:
            await self._settled(upload)

    def _wait_for_turn(self, upload: Upload) -> None:
        self._waiting.append(upload)
        self._new.set()

    def _next(self) -> list[Upload]:
        """The oldest uploads of a corpus that is not paused; of two files with the same name, only the earlier one."""
        group: dict[str, Upload] = {}
        ready = [upload for upload in self._waiting if upload.corpus not in self._resting]
        for upload in ready:
            if len(group) < _TOGETHER and upload.corpus == ready[0].corpus:
                group.setdefault(upload.name, upload)
        taken = {upload.id for upload in group.values()}
        self._waiting = [upload for upload in self._waiting if upload.id not in taken]
        return list(group.values())

    async def _settled(self, done: Upload) -> None:
        known = await asyncio.to_thread(self.folder.read, done.id)
        if known is not None and known.state not in UNFINISHED:
            return  # another process took it
        try:
            await asyncio.to_thread(self.folder.settle, done)
        except OSError as error:
            _LOG.error(
                "The record of the upload %s cannot be stored (%s); it is read again at the next start.", done.id, error
            )
        self._failures.pop(done.id, None)
        self.metrics.documents.labels(done.state).inc()

    def _put_off(self, group: Sequence[Upload], error: CorpusError) -> list[Upload]:
        """Pause a corpus whose index failed, and its uploads; returns those that failed too often.

        The next edit of the corpus publishes what this one did not.
        """
        for upload in group:
            self._failures[upload.id] = self._failures.get(upload.id, 0) + 1
        again = [upload for upload in group if self._failures[upload.id] <= len(_PAUSES_SECONDS)]
        ended = [upload for upload in group if upload not in again]
        corpus = group[0].corpus
        pause = max((_PAUSES_SECONDS[self._failures[upload.id] - 1] for upload in again), default=0.0)
        _LOG.warning(
            "Uploads to %r: retrying in %g s: %s; failed: %s. %s",
            corpus,
            pause,
            [upload.id for upload in again],
            [upload.id for upload in ended],
            error,
        )
        self._waiting[:0] = again  # before later files of the same names
        self._resting.add(corpus)
        asyncio.get_running_loop().call_later(pause, self._rested, corpus)
        return [replace(upload, state="failed", message=_NOT_TAKEN) for upload in ended]

    def _rested(self, corpus: str) -> None:
        self._resting.discard(corpus)
        self._new.set()

    async def _taken(self, group: Sequence[Upload]) -> list[Upload]:
        """The results of uploads to one corpus."""
        fresh = [upload for upload in group if await asyncio.to_thread(self._begun, upload)]
        retriever = self.retrievers.get(group[0].corpus)
        if not fresh:
            return []
        if not isinstance(retriever, HybridRetriever):
            raise CorpusError(f"The corpus {group[0].corpus!r} is no longer served.")
        options = await asyncio.to_thread(chunking_options, self.settings, retriever.encoder.name)
        chunker = prepared(options).name
        files = {source_name(self.folder.original(upload).resolve()): upload for upload in fresh}
        found = [
            FoundFile(path=self.folder.file(upload), source=source, named=True) for source, upload in files.items()
        ]
        found += await asyncio.to_thread(self._copies, group[0].corpus, retriever, files)
        edit = edit_live(self.settings, retriever.corpus, retriever.encoder, chunker=chunker)
        return [
            _ended(files[outcome.source], outcome)
            for outcome in await take_in(self.settings, found, options, edit)
            if outcome.source in files
        ]

    def _copies(self, corpus: str, retriever: HybridRetriever, files: Mapping[str, Upload]) -> list[FoundFile]:
        """Originals without a document because another had the same content, which may be about to be removed."""
        known = {document.source for document in retriever.corpus.catalogue.documents()}
        kept = {source_name(path.resolve()): path for path in sorted((self.folder.path / corpus).glob("*"))}
        return [
            FoundFile(path=path, source=source, named=True)
            for source, path in kept.items()
            if source not in known and source not in files
        ]

    def _begun(self, upload: Upload) -> bool:
        """Record that an upload is being read, unless that is recorded already."""
        known = self.folder.read(upload.id)
        if known is None or known.state in UNFINISHED:
            self.folder.keep(upload)
            return True
        return False


def _ended(upload: Upload, outcome: FileOutcome) -> Upload:
    if outcome.status != "skipped":
        reason = outcome.reason and f"{outcome.reason[0].upper()}{outcome.reason[1:].rstrip('.')}."
        return replace(upload, state="indexed", message=reason, passages=outcome.passages)
    if not outcome.broken and outcome.refusal is None:
        return replace(upload, state="indexed", message=_KNOWN_ALREADY)
    return replace(upload, state="failed", message=f"{upload.name!r} was rejected: {outcome.reason}.")


@asynccontextmanager
async def open_intake(
    settings: Settings, retrievers: Mapping[str, Retriever], metrics: Metrics
) -> AsyncIterator[Intake]:
    """The intake, running while it is open; unfinished work continues at the next start."""
    intake = Intake(
        settings=settings,
        retrievers=retrievers,
        metrics=metrics,
        folder=UploadFolder.below(settings.marag_data_dir),
        limits=UploadLimits.of(settings),
        suffixes=known_suffixes(),
    )
    await asyncio.to_thread(intake.resume)
    taking = asyncio.create_task(intake.keep_taking())
    try:
        yield intake
    finally:
        taking.cancel()
        await asyncio.wait({taking})

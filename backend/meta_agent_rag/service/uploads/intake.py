"""Adds uploaded documents to their corpora, a few at a time, while questions are answered."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...errors import CorpusError, RequestError
from ...ingestion.parsers import known_suffixes
from ...ingestion.report import FileOutcome
from ...ingestion.sources import file_hash
from ...retrieval.corpus.sample import SAMPLE
from ...retrieval.hybrid import HybridRetriever, Retriever
from ...settings import Settings
from ..access.limits import ConcurrencyLimit
from ..failures import refusal
from ..metrics import Metrics
from ..request_record import Client
from .indexing import Indexing
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
_KNOWN_ALREADY = "The corpus already has this content in another document."


@dataclass(kw_only=True)
class Intake:
    """The pending documents, oldest first; `places` limits concurrent uploads."""

    retrievers: Mapping[str, Retriever]
    metrics: Metrics
    folder: UploadFolder
    indexing: Indexing
    limits: UploadLimits
    suffixes: tuple[str, ...]
    places: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(limit=_AT_ONCE))
    _waiting: list[Upload] = field(default_factory=list, repr=False)
    _failures: dict[str, int] = field(default_factory=dict, repr=False)
    _resting: set[str] = field(default_factory=set, repr=False)
    _parsing: dict[str, Upload] = field(default_factory=dict, repr=False)
    _new: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _editing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    def corpus(self, name: str | None, client: Client) -> str:
        """The requested corpus, if the client may use it and it accepts documents. Raises `RequestError`."""
        wanted = client.corpus(name, self.retrievers)
        retriever = self.retrievers[wanted]
        if wanted == SAMPLE or not isinstance(retriever, HybridRetriever):
            raise RequestError(409, "read_only", f"The corpus {wanted!r} does not accept documents; name another one.")
        if len(self._waiting) >= _MOST_WAITING:
            words = "Too many documents are waiting to be read; send more later."
            raise RequestError(503, "overloaded", words, retry_after=30)
        return wanted

    async def accept(self, files: Sequence[Path], client: Client, corpus: str, at: float) -> list[Upload]:
        """Queue files that have arrived; for a file that this client has sent before, unchanged, the known upload."""
        current = await asyncio.to_thread(self.folder.current, corpus)
        uploads: list[Upload] = []
        for file in files:
            sent = Upload(id=file.parent.name, client_id=client.id, corpus=corpus, name=file.name, at=at)
            known = current.get(sent.place)
            if known is None or not await asyncio.to_thread(self._is_unchanged, known, file):
                known = sent
                self.folder.accept(file.parent, known)
                self._wait_for_turn(known)
            current[known.place] = known
            uploads.append(self._parsing.get(known.id, known))
        return uploads

    def _is_unchanged(self, known: Upload, file: Path) -> bool:
        """Is a file the same as an upload that is waiting, or whose content the corpus still has?"""
        stored = self.folder.file(known) if known.state in UNFINISHED else self.folder.original(known)
        try:
            content = file_hash(file)
            if file_hash(stored) != content:
                return False
        except OSError:  # moved meanwhile, or removed by the operator
            return False
        held = {document.content_hash for document in self.indexing.documents(known.corpus)}
        return known.state in UNFINISHED or content in held

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
        async with self._edited(patience):
            upload = await asyncio.to_thread(self.status, id_, client_id)
            if upload is None or upload.state == "deleted":
                return upload
            if upload.state == "parsing":
                raise RequestError(409, "in_progress", "The document is being read; delete it once it is indexed.")
            if upload.state == "indexed" and not await asyncio.to_thread(self.folder.is_replaced, upload):
                await self.indexing.remove(upload.corpus, self.indexing.source(upload))
            self._waiting = [other for other in self._waiting if other.id != id_]
            gone = replace(upload, state="deleted", message=None, passages=0)
            await asyncio.to_thread(self.folder.settle, gone)
            return gone

    async def drop(self, corpus: str, doc_id: str, client: Client, *, patience: float) -> bool:
        """Remove a document by its id in the corpus; `False` if there is none. Files outside `uploads/` are kept.

        Raises `RequestError`: 403 if the document is not from this client, whose key is not an administrator's
        either, and those of `delete`.
        """
        self.corpus(corpus, client)
        async with self._edited(patience):
            documents = await asyncio.to_thread(self.indexing.documents, corpus)
            source = next((document.source for document in documents if document.id == doc_id), None)
            if source is None:
                return False
            current = await asyncio.to_thread(self.folder.current, corpus)
            uploads = [
                one for one in current.values() if one.state == "indexed" and self.indexing.source(one) == source
            ]
            if "admin" not in client.scopes and not any(upload.client_id == client.id for upload in uploads):
                words = "This key did not send the document; removing it needs the scope 'admin'."
                raise RequestError(403, "forbidden", words)
            await self.indexing.remove(corpus, source)
            for upload in uploads:
                gone = replace(upload, state="deleted", message=None, passages=0)
                await asyncio.to_thread(self.folder.settle, gone)
            return True

    @asynccontextmanager
    async def _edited(self, patience: float) -> AsyncIterator[None]:
        """The right to edit corpora; raises `RequestError` (503) if it is not free in time."""
        try:
            async with asyncio.timeout(patience):
                await self._editing.acquire()
        except TimeoutError:
            words = "The corpus is being changed at the moment; delete the document later."
            raise RequestError(503, "overloaded", words, retry_after=30) from None
        try:
            yield
        finally:
            self._editing.release()

    def resume(self) -> None:
        """Continue the uploads of an earlier process; old finished ones are no longer reported."""
        self.folder.clear(older_than_seconds=self.limits.seconds)
        for upload in self.folder.waiting():
            if upload.state in UNFINISHED:
                self._wait_for_turn(upload)
            else:
                self.folder.settle(upload)
        self.folder.forget(older_than_seconds=_REMEMBERED_DAYS * 86_400)
        self._mark_replaced()

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
        await asyncio.to_thread(self._mark_replaced)

    def _mark_replaced(self) -> None:
        try:
            self.folder.mark_replaced()
        except OSError as error:
            _LOG.error("The records of replaced uploads cannot be stored (%s); they are at the next start.", error)

    def _wait_for_turn(self, upload: Upload) -> None:
        self._waiting.append(upload)
        self._new.set()

    def _next(self) -> list[Upload]:
        """The oldest uploads of a corpus that is not paused; of two with the same place, only the earlier one."""
        group: dict[tuple[str, str, str], Upload] = {}
        ready = [upload for upload in self._waiting if upload.corpus not in self._resting]
        for upload in ready:
            if len(group) < _TOGETHER and upload.corpus == ready[0].corpus:
                group.setdefault(upload.place, upload)
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
        if not fresh:
            return []
        outcomes = await self.indexing.take(group[0].corpus, fresh)
        return [_ended(upload, outcomes[upload.id]) for upload in fresh if upload.id in outcomes]

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
    folder = UploadFolder.below(settings.marag_data_dir)
    intake = Intake(
        retrievers=retrievers,
        metrics=metrics,
        folder=folder,
        indexing=Indexing(settings=settings, retrievers=retrievers, folder=folder),
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

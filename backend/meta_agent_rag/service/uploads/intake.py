"""Takes uploaded documents into their corpora, one after the other, while questions are answered."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...errors import CorpusError, RequestError
from ...ingestion.chunkers import prepared
from ...ingestion.parsers import discover_parsers
from ...ingestion.pipeline import chunking_options, take_in
from ...ingestion.report import FileOutcome
from ...ingestion.sources import FoundFile, source_name
from ...retrieval.hybrid import HybridRetriever, Retriever
from ...retrieval.live import edit_live
from ...retrieval.sample import SAMPLE
from ...settings import Settings
from ..failures import refusal
from ..inquiry import Client
from ..limits import Places
from ..metrics import Metrics
from .receiving import UploadLimits
from .records import UNFINISHED, Upload, UploadFolder

_LOG = logging.getLogger(__name__)
_FOLDER = "uploads"
_AT_ONCE = 8
_MOST_WAITING = 200
_NOT_TAKEN = "The corpus cannot take documents at the moment; tell the operator this id."
_KNOWN_ALREADY = "The corpus has this content already, under another name."


@dataclass(kw_only=True)
class Intake:
    """The documents on their way; `places` are for uploads that are coming in."""

    settings: Settings
    retrievers: Mapping[str, Retriever]
    metrics: Metrics
    folder: UploadFolder
    limits: UploadLimits
    suffixes: tuple[str, ...]
    places: Places = field(default_factory=lambda: Places(limit=_AT_ONCE))
    _queue: "asyncio.Queue[Upload]" = field(default_factory=asyncio.Queue, repr=False)
    _now: Upload | None = None

    def corpus(self, name: str | None) -> str:
        """The corpus that is meant, one that takes documents. Raises `RequestError`."""
        wanted = name or next(iter(self.retrievers), "")
        retriever = self.retrievers.get(wanted)
        if retriever is None:
            known = ", ".join(self.retrievers)
            raise RequestError(404, "unknown_corpus", f"The corpus {wanted!r} is not served; there are: {known}.")
        if wanted == SAMPLE or not isinstance(retriever, HybridRetriever):
            raise RequestError(409, "read_only", f"The corpus {wanted!r} takes no documents; name another one.")
        if self._queue.qsize() >= _MOST_WAITING:
            words = "Too many documents wait to be read; send more later."
            raise RequestError(503, "overloaded", words, retry_after=30)
        return wanted

    def accept(self, files: Sequence[Path], client: Client, corpus: str, at: float) -> list[Upload]:
        """Have files that have come wait for their turn."""
        uploads = [
            Upload(id=file.parent.name, client_id=client.id, corpus=corpus, name=file.name, at=at) for file in files
        ]
        for upload, file in zip(uploads, files, strict=True):
            self.folder.accept(file.parent, upload)
            self._queue.put_nowait(upload)
        return uploads

    def status(self, id_: str, client_id: str) -> Upload | None:
        """What became of a document of this client."""
        upload = self._now if self._now is not None and self._now.id == id_ else self.folder.read(id_)
        return upload if upload is not None and upload.client_id == client_id else None

    def resume(self) -> None:
        """Go on with what an earlier process left."""
        self.folder.clear(older_than_seconds=self.limits.seconds)
        for upload in self.folder.waiting():
            if upload.state in UNFINISHED:
                self._queue.put_nowait(upload)
            else:
                self.folder.settle(upload)

    async def keep_taking(self) -> None:
        """Take in one document after the other, until cancelled; one that fails holds up no other."""
        while True:
            upload = await self._queue.get()
            self._now = replace(upload, state="parsing")
            try:
                done = await self._taken(self._now)
            except Exception as error:  # noqa: BLE001  # whatever it was, the next document has its turn
                _LOG.error("The upload %s failed: %s: %s", upload.id, type(error).__name__, error)
                words = _NOT_TAKEN if isinstance(error, CorpusError) else str(refusal(error))
                done = replace(upload, state="failed", message=words)
            await self._settled(done)
            self._now = None

    async def _settled(self, done: Upload) -> None:
        try:
            await asyncio.to_thread(self.folder.settle, done)
        except OSError as error:
            _LOG.error("The record of the upload %s cannot be kept (%s); it is read again at a start.", done.id, error)
        self.metrics.documents.labels(done.state).inc()

    async def _taken(self, upload: Upload) -> Upload:
        known = await asyncio.to_thread(self.folder.read, upload.id)
        if known is not None and known.state not in UNFINISHED:
            return known  # another process was faster
        retriever = self.retrievers.get(upload.corpus)
        if not isinstance(retriever, HybridRetriever):
            raise CorpusError(f"The corpus {upload.corpus!r} is not served any more.")
        await asyncio.to_thread(self.folder.keep, upload)
        options = await asyncio.to_thread(chunking_options, self.settings, retriever.encoder.name)
        source = source_name(self.folder.original(upload).resolve())
        file = FoundFile(path=self.folder.file(upload), source=source, named=True)
        chunker = prepared(options).name
        edit = edit_live(self.settings, retriever.corpus, retriever.encoder, chunker=chunker)
        (outcome,) = await take_in(self.settings, [file], options, edit)
        return _ended(upload, outcome)


def _ended(upload: Upload, outcome: FileOutcome) -> Upload:
    if outcome.status != "skipped":
        reason = outcome.reason and f"{outcome.reason[0].upper()}{outcome.reason[1:].rstrip('.')}."
        return replace(upload, state="indexed", message=reason, passages=outcome.passages)
    if not outcome.broken and outcome.refusal is None:
        return replace(upload, state="indexed", message=_KNOWN_ALREADY)
    return replace(upload, state="failed", message=f"{upload.name!r} was not taken: {outcome.reason}.")


@asynccontextmanager
async def open_intake(
    settings: Settings, retrievers: Mapping[str, Retriever], metrics: Metrics
) -> AsyncIterator[Intake]:
    """The intake, at work while it is open; what it is at when it is closed goes on at the next start."""
    intake = Intake(
        settings=settings,
        retrievers=retrievers,
        metrics=metrics,
        folder=UploadFolder(path=settings.marag_data_dir / _FOLDER),
        limits=UploadLimits.of(settings),
        suffixes=tuple(sorted({suffix for parser in discover_parsers() for suffix in parser.suffixes})),
    )
    await asyncio.to_thread(intake.resume)
    taking = asyncio.create_task(intake.keep_taking())
    try:
        yield intake
    finally:
        taking.cancel()
        await asyncio.wait({taking})

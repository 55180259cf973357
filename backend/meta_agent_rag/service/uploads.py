"""Documents sent by clients: streamed to disk within limits, then added to their corpora in the background.

An upload is a row of the table `uploads` and the file `<data_dir>/uploads/<id>/<name>`, kept while its document is in
the corpus. One process of a data folder reads them, the others only accept them.
"""

import asyncio
import logging
import re
import shutil
import time
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from filelock import FileLock, Timeout
from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from ..errors import CorpusError, RequestError
from ..ingestion.parsers import known_suffixes
from ..ingestion.pipeline import chunking_of, take_in
from ..ingestion.sources import FileOutcome, FoundFile, file_hash, source_name
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.editing import CorpusEditor, edit_corpus
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import HybridRetriever, Retriever
from ..settings import Settings
from ..text.normalise import encodable
from .access import Client
from .database import UPLOADS, in_utc
from .failures import refusal
from .metrics import Metrics
from .request import new_id

_LOG = logging.getLogger(__name__)
FIELD = "files"
MOST_FILES = 20
UPLOAD_SECONDS = 300.0
"""The most time for receiving one body."""
_AT_ONCE = 8
_MOST_WAITING = 200
_REMEMBERED = timedelta(days=90)
_PAUSES_SECONDS = (2.0, 15.0)
"""How long a corpus rests before another attempt after its index has failed."""
_LOOK_SECONDS = 1.0
_TOGETHER = 16
"""The number of documents of one corpus that are read and published together."""
_MEGABYTE = 1024 * 1024
_LONGEST_BYTES = 120
State: TypeAlias = Literal["queued", "parsing", "indexed", "failed", "replaced", "deleted"]


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A document sent by a client. `message` is one sentence: why it failed, or a note."""

    id: str
    client_id: str
    corpus: str
    name: str
    digest: str
    at: datetime
    state: State = "queued"
    message: str | None = None
    passages: int = 0

    @property
    def place(self) -> ColumnElement[bool]:
        """What a later upload replaces: those of the same name by the same key; other keys have other places."""
        same = (UPLOADS.c.corpus == self.corpus) & (UPLOADS.c.client_id == self.client_id)
        return same & (UPLOADS.c.name == self.name)


@dataclass(kw_only=True)
class Uploads:
    """The uploads of all clients, and the work on them; `receiving` limits concurrent requests."""

    settings: Settings
    engine: AsyncEngine
    retrievers: Mapping[str, Retriever]
    metrics: Metrics
    suffixes: tuple[str, ...] = field(default_factory=known_suffixes)
    receiving: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _new: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _editing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _resting: dict[str, tuple[int, float]] = field(default_factory=dict, repr=False)
    """Failed attempts, and the `time.monotonic` timestamp of the next one, by corpus."""

    @property
    def folder(self) -> Path:
        """The folder of all files."""
        return self.settings.marag_data_dir.resolve() / "uploads"

    def file(self, upload: Upload) -> Path:
        """The file of an upload."""
        return self.folder / upload.id / upload.name

    def source(self, upload: Upload) -> str:
        """The source of its document in the corpus."""
        return source_name(self.file(upload))

    async def accept(self, request: Request, client: Client, corpus: str | None) -> list[Upload]:
        """Store the files of a request; for one that this client has sent before, unchanged, the known upload.

        Raises `RequestError`: 404 or 409 for the corpus, 408 for a body that takes too long, 413 for one that is too
        large, 415 if it is not an upload or has an unsupported format, 422 if it is malformed, 503 if there are too
        many.
        """
        wanted = client.corpus(corpus, self.retrievers)
        self._require_editable(wanted)
        if self.receiving.locked() or len(await self.select(UPLOADS.c.state == "queued")) >= _MOST_WAITING:
            words = "Too many documents are waiting to be read; send more later."
            raise RequestError(503, "overloaded", words, retry_after=30)
        async with self.receiving, _received(request, self.settings) as files:
            names = [safe_name(file.filename or "") for file in files]
            for name in names:
                if "." in name and not name.lower().endswith(self.suffixes):
                    words = f"{name!r} has an unsupported format; send {', '.join(self.suffixes)}."
                    raise RequestError(415, "unsupported_type", words)
            accepted = [await self._accepted(client, wanted, *item) for item in zip(names, files, strict=True)]
        self._new.set()
        return accepted

    async def select(self, *conditions: ColumnElement[bool]) -> list[Upload]:
        """Uploads, the oldest first."""
        query = select(UPLOADS).where(*conditions).order_by(UPLOADS.c.at, UPLOADS.c.id)
        async with self.engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        return [Upload(**{**row._mapping, "at": in_utc(row.at)}) for row in rows]

    async def documents(self, corpus: str) -> tuple[DocumentRecord, ...]:
        """The documents of a served corpus. Raises `RequestError` if it has no list of them."""
        retriever = self.retrievers[corpus]
        if not isinstance(retriever, HybridRetriever):
            raise RequestError(404, "not_found", f"The corpus {corpus!r} has no list of documents.")
        return await asyncio.to_thread(retriever.corpus.catalogue.documents)

    async def delete(self, upload: Upload, patience: float) -> Upload:
        """Remove an upload, with its document and its file; idempotent.

        Raises `RequestError`: 409 while it is being read, or for the last document of a corpus; 503 if the corpus
        is still being edited after `patience` seconds.
        """
        async with self._edited(patience):
            (upload,) = await self.select(UPLOADS.c.id == upload.id)
            if upload.state == "parsing":
                raise RequestError(409, "in_progress", "The document is being read; delete it once it is indexed.")
            if upload.state in {"queued", "indexed"} and upload.corpus in self.retrievers:
                await self._remove(upload.corpus, self.source(upload))
            return await self._ended(replace(upload, state="deleted", message=None, passages=0))

    async def drop(self, corpus: str, doc_id: str, client: Client, patience: float) -> bool:
        """Remove a document by its id in the corpus; `False` if there is none. Files of the operator are kept.

        Raises `RequestError`: 403 if neither is it from this client nor its key an administrator's, and those of
        `delete`.
        """
        self._require_editable(client.corpus(corpus, self.retrievers))
        async with self._edited(patience):
            source = next((one.source for one in await self.documents(corpus) if one.id == doc_id), None)
            if source is None:
                return False
            known = await self.select(UPLOADS.c.corpus == corpus, UPLOADS.c.state.in_(["queued", "indexed"]))
            uploads = [upload for upload in known if self.source(upload) == source]
            if "admin" not in client.scopes and not any(upload.client_id == client.id for upload in uploads):
                words = "This key did not send the document; removing it needs the scope 'admin'."
                raise RequestError(403, "forbidden", words)
            await self._remove(corpus, source)
            for upload in uploads:
                await self._ended(replace(upload, state="deleted", message=None, passages=0))
            return True

    async def keep_reading(self) -> None:
        """Read waiting uploads until cancelled, as soon as no other process of this data folder does."""
        await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True)
        lock = FileLock(self.folder / "lock", timeout=0, thread_local=False)
        while True:
            try:
                with lock:
                    await self._resumed()
                    while True:
                        self._new.clear()
                        if group := await self._next():
                            async with self._editing:
                                await self._read(group)
                        else:
                            with suppress(TimeoutError):
                                async with asyncio.timeout(_LOOK_SECONDS):
                                    await self._new.wait()
            except Timeout:
                await asyncio.sleep(_LOOK_SECONDS)
            except (SQLAlchemyError, OSError, CorpusError) as error:
                _LOG.error("Uploads cannot be read at the moment (%s).", type(error).__name__)
                await asyncio.sleep(_LOOK_SECONDS)

    async def _resumed(self) -> None:
        """Queue what an ended process was reading, and clear away what is no longer needed."""
        for upload in await self.select(UPLOADS.c.state == "parsing"):
            if self.file(upload).exists():  # else it is on another machine
                await self._change([upload], state="queued")
        old = (UPLOADS.c.at < datetime.now(UTC) - _REMEMBERED) & UPLOADS.c.state.not_in(["queued", "indexed"])
        async with self.engine.begin() as connection:
            await connection.execute(delete(UPLOADS).where(old))
        known = {upload.id for upload in await self.select(UPLOADS.c.state.in_(["queued", "indexed"]))}
        for folder in await asyncio.to_thread(lambda: list(self.folder.glob(f"{'[0-9a-f]' * 32}/"))):
            if folder.name not in known and time.time() - folder.stat().st_mtime > UPLOAD_SECONDS:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _next(self) -> list[Upload]:
        """The oldest waiting uploads of a corpus that is not resting; of two to one place, only the earlier one."""
        group: dict[tuple[str, str], Upload] = {}
        resting = [corpus for corpus, (_, until) in self._resting.items() if until > time.monotonic()]
        queued = await self.select(UPLOADS.c.state == "queued", UPLOADS.c.corpus.not_in(resting))
        waiting = [upload for upload in queued if self.file(upload).exists()]
        for upload in waiting:
            if len(group) < _TOGETHER and upload.corpus == waiting[0].corpus:
                group.setdefault((upload.client_id, upload.name), upload)
        return list(group.values())

    async def _read(self, group: Sequence[Upload]) -> None:
        """Add uploads to their corpus, where they replace those at their places, and note how that ended.

        After a failure of an index they are queued again; what is in the corpus by then is read as unchanged.
        """
        corpus, fault = group[0].corpus, ""
        await self._change(group, state="parsing")
        try:
            outcomes = await self._taken_in(corpus, {self.source(upload): self.file(upload) for upload in group})
        except Exception as error:  # noqa: BLE001  # in any case, the next ones are read
            if isinstance(error, CorpusError) and await self._put_off(group, error):
                return
            _LOG.error("Uploads to %r failed: %s: %s", corpus, type(error).__name__, error)
            outcomes, fault = {}, str(refusal(error))
            if isinstance(error, CorpusError):
                fault = "The corpus cannot accept documents at the moment; tell the operator this id."
        served = isinstance(self.retrievers.get(corpus), HybridRetriever)
        documents = {document.source: document for document in (await self.documents(corpus) if served else ())}
        ended = [
            _result(upload, outcomes.get(source), documents.get(source), fault)
            for upload, source in ((upload, self.source(upload)) for upload in group)
        ]
        for upload in ended:
            if upload.state == "indexed":
                try:
                    await self._replace_earlier(upload)
                except Exception as error:  # noqa: BLE001  # its document is in the corpus all the same
                    if await self._put_off(group, error):
                        return
                    _LOG.error("The earlier version of upload %s stays in %r: %s", upload.id, corpus, error)
        self._resting.pop(corpus, None)
        unended = {upload.id for upload in await self._being_read(group)}
        for upload in ended:
            if upload.id in unended:  # else the document with its content was removed, and it is queued again
                await self._ended(upload)
                self.metrics.documents.labels(upload.state).inc()

    async def _taken_in(self, corpus: str, files: Mapping[str, Path]) -> dict[str, FileOutcome]:
        """Add files to a corpus; the outcomes by source. Raises the errors of an edit."""
        retriever = self.retrievers.get(corpus)
        if not isinstance(retriever, HybridRetriever):
            raise CorpusError(f"The corpus {corpus!r} is no longer served.")
        found = [FoundFile(path=path, source=source, named=True) for source, path in files.items()]
        return {one.source: one for one in await take_in(self.settings, found, self._edit(retriever))}

    async def _put_off(self, group: Sequence[Upload], error: Exception) -> bool:
        """Queue a group again and let its corpus rest; `False` if that was tried often enough."""
        corpus = group[0].corpus
        attempts, _ = self._resting.get(corpus, (0, 0.0))
        if attempts == len(_PAUSES_SECONDS):
            return False
        _LOG.warning("Uploads to %r failed and are tried again: %s", corpus, error)
        self._resting[corpus] = (attempts + 1, time.monotonic() + _PAUSES_SECONDS[attempts])
        await self._change(await self._being_read(group), state="queued")
        return True

    async def _being_read(self, group: Sequence[Upload]) -> list[Upload]:
        ids = [upload.id for upload in group]
        return await self.select(UPLOADS.c.id.in_(ids), UPLOADS.c.state == "parsing")

    async def _replace_earlier(self, upload: Upload) -> None:
        words = "A later upload of the same name by this key replaced it."
        for earlier in await self.select(UPLOADS.c.state == "indexed", upload.place):
            if earlier.id != upload.id:
                await self._remove(upload.corpus, self.source(earlier))
                await self._ended(replace(earlier, state="replaced", message=words, passages=0))

    async def _remove(self, corpus: str, source: str) -> None:
        """Remove a document; another upload with the same content, which has none, is then read in its own right.

        Raises `RequestError` (409) for the last document of a corpus.
        """
        retriever, documents = self.retrievers[corpus], await self.documents(corpus)
        assert isinstance(retriever, HybridRetriever)
        gone = next((document for document in documents if document.source == source), None)
        if gone is None:
            return
        same = await self.select(UPLOADS.c.digest == gone.content_hash, UPLOADS.c.corpus == corpus)
        copies = [one for one in same if one.state in {"parsing", "indexed"} and self.source(one) != source]
        if len(documents) == 1 and not copies:
            words = f"The corpus {corpus!r} has no other document; add one before you delete this one."
            raise RequestError(409, "last_document", words)
        await self._change(copies, state="queued", message=None)  # first: a failing edit may have removed it, too
        self._new.set()
        async with self._edit(retriever) as editor:
            await editor.remove([gone.id])

    def _edit(self, retriever: HybridRetriever) -> AbstractAsyncContextManager[CorpusEditor]:
        chunker, name = chunking_of(self.settings).name, retriever.corpus.manifest.name
        return edit_corpus(self.settings, name, retriever.encoder, chunker=chunker, shared=True)

    async def _ended(self, upload: Upload) -> Upload:
        """Note the state that an upload has reached; its file is kept only for an indexed one."""
        await self._change([upload], state=upload.state, message=upload.message, passages=upload.passages)
        if upload.state != "indexed":
            await asyncio.to_thread(shutil.rmtree, self.file(upload).parent, ignore_errors=True)
        return upload

    async def _change(self, uploads: Sequence[Upload], **values: Any) -> None:
        ids = [upload.id for upload in uploads]
        async with self.engine.begin() as connection:
            await connection.execute(update(UPLOADS).where(UPLOADS.c.id.in_(ids)).values(**values))

    async def _accepted(self, client: Client, corpus: str, name: str, file: UploadFile) -> Upload:
        """Store a file and its row, unless it is what the corpus has, or is to have, at its place."""
        upload = Upload(id=new_id(), client_id=client.id, corpus=corpus, name=name, digest="", at=datetime.now(UTC))
        path, kept = self.file(upload), False
        try:
            upload = replace(upload, digest=await asyncio.to_thread(_written, file, path))
            known = await self.select(UPLOADS.c.state.in_(["queued", "parsing", "indexed"]), upload.place)
            if known and known[-1].digest == upload.digest:
                held = {document.content_hash for document in await self.documents(corpus)}
                if known[-1].state != "indexed" or upload.digest in held:
                    return known[-1]
            async with self.engine.begin() as connection:
                await connection.execute(insert(UPLOADS).values(**vars(upload)))
            kept = True
            return upload
        except (OSError, SQLAlchemyError) as error:
            raise _unavailable(error) from None
        finally:
            if not kept:
                await asyncio.to_thread(shutil.rmtree, path.parent, ignore_errors=True)

    def _require_editable(self, corpus: str) -> None:
        if corpus == SAMPLE or not isinstance(self.retrievers[corpus], HybridRetriever):
            raise RequestError(409, "read_only", f"The corpus {corpus!r} cannot be changed; name another one.")

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


@asynccontextmanager
async def open_uploads(
    settings: Settings, engine: AsyncEngine, retrievers: Mapping[str, Retriever], metrics: Metrics
) -> AsyncIterator[Uploads]:
    """The uploads, read while they are open; unfinished work continues at the next start."""
    uploads = Uploads(settings=settings, engine=engine, retrievers=retrievers, metrics=metrics)
    reading = asyncio.create_task(uploads.keep_reading())
    try:
        yield uploads
    finally:
        reading.cancel()
        await asyncio.wait({reading})


def _result(upload: Upload, outcome: FileOutcome | None, document: DocumentRecord | None, fault: str) -> Upload:
    """The end of an upload; without an outcome, because of a `fault`, its document may still be in the corpus."""
    if outcome is None:
        if document is None:
            return replace(upload, state="failed", message=fault)
        return replace(upload, state="indexed", passages=document.passages)
    if outcome.status == "skipped" and (outcome.broken or outcome.refusal is not None):
        return replace(upload, state="failed", message=f"{upload.name!r} was rejected: {outcome.reason}.")
    if document is None:
        words = "The corpus already has this content in another document."
        return replace(upload, state="indexed", message=words, passages=0)
    reason = outcome.reason if outcome.status != "skipped" else None
    message = reason and f"{reason[0].upper()}{reason[1:].rstrip('.')}."
    return replace(upload, state="indexed", message=message, passages=document.passages)


def _written(file: UploadFile, path: Path) -> str:
    """Write a file; returns its hash. Raises `OSError`."""
    path.parent.mkdir(parents=True)
    with path.open("wb") as target:
        shutil.copyfileobj(file.file, target, _MEGABYTE)
    return file_hash(path)


@asynccontextmanager
async def _received(request: Request, settings: Settings) -> AsyncIterator[list[UploadFile]]:
    """The files of a multipart body, within the limits of size and time. Raises `RequestError`."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise RequestError(415, "unsupported_type", "Uploads must be multipart/form-data.")
    most, late = int(settings.ingest_file_mb * _MEGABYTE), time.monotonic() + UPLOAD_SECONDS
    size = 0

    def require_size(bytes_: int) -> None:
        if bytes_ > most:
            raise RequestError(413, "too_large", f"The upload is larger than {most / _MEGABYTE:g} MB; send less.")

    async def limited() -> Message:
        nonlocal size
        try:
            async with asyncio.timeout(late - time.monotonic()):
                message = await request.receive()
        except TimeoutError:
            words = "The upload takes too long; send less at once, or use a faster connection."
            raise RequestError(408, "upload_too_slow", words) from None
        size += len(message.get("body", b""))
        require_size(size)
        return message

    announced = request.headers.get("content-length", "")
    require_size(int(announced) if announced.isdecimal() else 0)
    wrong = f"Send 1 to {MOST_FILES} files, each as {FIELD!r}, and nothing else."
    try:
        form = await Request(request.scope, limited).form(max_files=MOST_FILES, max_fields=0)
    except HTTPException:
        raise RequestError(422, "invalid_request", wrong) from None
    except OSError as error:
        raise _unavailable(error) from None
    try:
        files = [file for file in form.getlist(FIELD) if isinstance(file, UploadFile)]
        if not files or any(name != FIELD for name in form):
            raise RequestError(422, "invalid_request", wrong)
        yield files
    finally:
        await form.close()


def _unavailable(error: Exception) -> RequestError:
    _LOG.error("An upload cannot be stored (%s).", type(error).__name__)
    return RequestError(503, "unavailable", "Uploads cannot be stored at the moment; try again later.")


def safe_name(given: str) -> str:
    """The last part of a path, without characters that a file system, a header or a terminal could misinterpret.

    >>> safe_name("../../etc/passwd")
    'passwd'
    >>> safe_name("C:\\\\notes\\\\a\\r\\nb.txt")
    'a__b.txt'
    """
    last = unicodedata.normalize("NFC", encodable(re.split(r"[/\\]", given)[-1]))
    unsafe = [character in '<>:"|?*' or unicodedata.category(character)[0] == "C" for character in last]
    name = "".join("_" if bad else character for character, bad in zip(last, unsafe, strict=True)).strip(" .")
    if len(name.encode()) > _LONGEST_BYTES:
        suffix = Path(name).suffix.encode()[:12]
        stem = name.encode()[: _LONGEST_BYTES - len(suffix)]
        name = f"{stem.decode('utf-8', 'ignore')}{suffix.decode('utf-8', 'ignore')}".strip(" .")
    return name or "document"

"""Documents sent by clients: streamed to disk within limits, then added to their corpora in the background.

An upload is a row of the table `uploads` and a file: `<data_dir>/uploads/<id>/<name>` until it is read, and
`<data_dir>/uploads/<corpus>/<key>/<name>` while its document is in the corpus. One process of a data folder reads them,
the others only accept them.
"""

import asyncio
import logging
import re
import shutil
import time
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from filelock import FileLock, Timeout
from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message, Receive

from ..errors import CorpusError, RequestError
from ..ingestion.chunkers import ChunkingOptions, prepared
from ..ingestion.parsers import known_suffixes
from ..ingestion.pipeline import chunking_options, take_in
from ..ingestion.sources import FileOutcome, FoundFile, file_hash, source_name
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.editing import CorpusEditor, edit_corpus
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import HybridRetriever, Retriever
from ..settings import Settings
from ..text.normalise import encodable
from .database import UPLOADS, in_utc
from .failures import refusal
from .metrics import Metrics
from .request_record import Client, new_id

_LOG = logging.getLogger(__name__)
FIELD = "files"
MOST_FILES = 20
UPLOAD_SECONDS = 300.0
"""The most time for receiving one body."""
_AT_ONCE = 8
_MOST_WAITING = 200
_REMEMBERED = timedelta(days=90)
_PAUSES_SECONDS = (2.0, 15.0)
_LOOK_SECONDS = 1.0
_TOGETHER = 16
"""The number of documents of one corpus that are read and published together."""
_MEGABYTE = 1024 * 1024
_LATE, _LARGE = "late", "large"
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
    def place(self) -> tuple[str, str, str]:
        """What identifies its document: a later upload to the same place replaces it; other keys have other places."""
        return self.corpus, self.client_id, self.name


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
    _failures: dict[str, int] = field(default_factory=dict, repr=False)
    _resting: dict[str, float] = field(default_factory=dict, repr=False)

    @property
    def folder(self) -> Path:
        """The folder of all files."""
        return self.settings.marag_data_dir / "uploads"

    def source(self, upload: Upload) -> str:
        """The source of its document in the corpus."""
        return source_name(self._original(upload))

    async def accept(self, request: Request, client: Client, corpus: str | None) -> list[Upload]:
        """Store the files of a request; for one that this client has sent before, unchanged, the known upload.

        Raises `RequestError`: 404 or 409 for the corpus, 408 for a body that takes too long, 413 for one that is too
        large, 415 if it is not an upload or has an unsupported format, 422 if it is malformed, 503 if there are too
        many.
        """
        wanted = client.corpus(corpus, self.retrievers)
        if not self._takes_documents(wanted):
            raise RequestError(409, "read_only", f"The corpus {wanted!r} does not accept documents; name another one.")
        if self.receiving.locked() or len(await self.select(UPLOADS.c.state == "queued")) >= _MOST_WAITING:
            raise RequestError(
                503, "overloaded", "Too many documents are waiting to be read; send more later.", retry_after=30
            )
        async with self.receiving, _received(request, self.settings) as files:
            names = [self._name(file) for file in files]
            accepted = [await self._accepted(client, wanted, *item) for item in zip(names, files, strict=True)]
        self._new.set()
        return accepted

    async def get(self, id_: str, client: Client) -> Upload | None:
        """An upload of this client."""
        found = await self.select(UPLOADS.c.id == id_, UPLOADS.c.client_id == client.id)
        return found[0] if found else None

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
            if upload.state == "indexed" and upload.corpus in self.retrievers:
                await self._remove(upload.corpus, self.source(upload))
            return upload if upload.state == "deleted" else await self._deleted(upload)

    async def drop(self, corpus: str, doc_id: str, client: Client, patience: float) -> bool:
        """Remove a document by its id in the corpus; `False` if there is none. Files of the operator are kept.

        Raises `RequestError`: 403 if neither is it from this client nor its key an administrator's, and those of
        `delete`.
        """
        if not self._takes_documents(client.corpus(corpus, self.retrievers)):
            raise RequestError(409, "read_only", f"The corpus {corpus!r} cannot be changed; name another one.")
        async with self._edited(patience):
            source = next((one.source for one in await self.documents(corpus) if one.id == doc_id), None)
            if source is None:
                return False
            known = await self.select(UPLOADS.c.corpus == corpus, UPLOADS.c.state == "indexed")
            uploads = [upload for upload in known if self.source(upload) == source]
            if "admin" not in client.scopes and not any(upload.client_id == client.id for upload in uploads):
                words = "This key did not send the document; removing it needs the scope 'admin'."
                raise RequestError(403, "forbidden", words)
            await self._remove(corpus, source)
            for upload in uploads:
                await self._deleted(upload)
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
                        await self._read_next()
            except Timeout:
                await asyncio.sleep(_LOOK_SECONDS)
            except (SQLAlchemyError, OSError) as error:
                _LOG.error("Uploads cannot be read at the moment (%s).", type(error).__name__)
                await asyncio.sleep(_LOOK_SECONDS)

    async def _resumed(self) -> None:
        """Queue what an ended process was reading, and clear away what is no longer needed."""
        for upload in await self.select(UPLOADS.c.state == "parsing"):
            if self._file(upload).exists():  # else it is on another machine
                await self._change(UPLOADS.c.id == upload.id, state="queued")
        old = (UPLOADS.c.at < datetime.now(UTC) - _REMEMBERED) & UPLOADS.c.state.not_in(["queued", "indexed"])
        async with self.engine.begin() as connection:
            await connection.execute(delete(UPLOADS).where(old))
        known = {upload.id for upload in await self.select(UPLOADS.c.state == "queued")}
        for folder in await asyncio.to_thread(lambda: list(self.folder.glob(f"{'[0-9a-f]' * 32}/"))):
            if folder.name not in known and time.time() - folder.stat().st_mtime > UPLOAD_SECONDS:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _read_next(self) -> None:
        """Read the oldest waiting uploads of one corpus, or wait for new ones."""
        self._new.clear()
        group = await self._next()
        if group:
            async with self._editing:
                await self._read(group)
            return
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._new.wait()
        except TimeoutError:
            return

    async def _next(self) -> list[Upload]:
        """The oldest uploads of a corpus that is not resting; of two to one place, only the earlier one."""
        now = time.monotonic()
        resting = [corpus for corpus, until in self._resting.items() if until > now]
        waiting = await self.select(UPLOADS.c.state == "queued", UPLOADS.c.corpus.not_in(resting))
        group: dict[tuple[str, str, str], Upload] = {}
        for upload in waiting:
            if len(group) < _TOGETHER and upload.corpus == waiting[0].corpus and self._file(upload).exists():
                group.setdefault(upload.place, upload)
        return list(group.values())

    async def _read(self, group: Sequence[Upload]) -> None:
        """Add uploads to their corpus and note how that ended."""
        corpus = group[0].corpus
        await self._change(UPLOADS.c.id.in_([upload.id for upload in group]), state="parsing")
        try:
            outcomes = await self._taken_in(corpus, group)
        except CorpusError as error:
            await self._put_off(corpus, group, error)
            return
        except Exception as error:  # noqa: BLE001  # in any case, the next ones are read
            _LOG.error("Uploads to %r failed: %s: %s", corpus, type(error).__name__, error)
            outcomes = {}
            for upload in group:
                await self._ended(replace(upload, state="failed", message=str(refusal(error))))
        self._failures.pop(corpus, None)
        if outcomes:
            documents = {document.source: document for document in await self.documents(corpus)}
            for upload in group:
                await self._ended(_result(upload, outcomes[upload.id], documents.get(self.source(upload))))

    async def _taken_in(self, corpus: str, uploads: Sequence[Upload]) -> dict[str, FileOutcome]:
        """Add uploads to a corpus; the outcomes by id. Raises the errors of an edit."""
        retriever = self.retrievers.get(corpus)
        if not isinstance(retriever, HybridRetriever):
            raise CorpusError(f"The corpus {corpus!r} is no longer served.")
        files = {self.source(upload): upload for upload in uploads}
        found = [FoundFile(path=self._file(upload), source=source, named=True) for source, upload in files.items()]
        options, edit = await self._edit(retriever)
        outcomes = await take_in(self.settings, found, options, edit)
        return {files[outcome.source].id: outcome for outcome in outcomes if outcome.source in files}

    async def _remove(self, corpus: str, source: str) -> None:
        """Remove a document; another upload with the same content is then read in its own right.

        Raises `RequestError` (409) for the last document of a corpus.
        """
        retriever, documents = self.retrievers[corpus], await self.documents(corpus)
        assert isinstance(retriever, HybridRetriever)
        gone = [document for document in documents if document.source == source]
        if not gone:
            return
        copies = await self._copies(corpus, source, [document.content_hash for document in gone])
        if len(documents) == 1 and not copies:
            words = f"The corpus {corpus!r} has no other document; add one before you delete this one."
            raise RequestError(409, "last_document", words)
        _, edit = await self._edit(retriever)
        async with edit as editor:
            await editor.remove([document.id for document in gone])
        await self._read_again(copies)

    async def _copies(self, corpus: str, source: str, digests: Sequence[str]) -> list[Upload]:
        """Uploads of the same content, which has only one document."""
        same = UPLOADS.c.digest.in_(digests) & (UPLOADS.c.corpus == corpus) & (UPLOADS.c.state == "indexed")
        return [upload for upload in await self.select(same) if self.source(upload) != source]

    async def _read_again(self, uploads: Sequence[Upload]) -> None:
        await self._change(UPLOADS.c.id.in_([upload.id for upload in uploads]), state="queued", message=None)
        self._new.set()

    async def _edit(
        self, retriever: HybridRetriever
    ) -> tuple[ChunkingOptions, AbstractAsyncContextManager[CorpusEditor]]:
        options = await asyncio.to_thread(chunking_options, self.settings, retriever.encoder.name)
        chunker = prepared(options).name
        name = retriever.corpus.manifest.name
        return options, edit_corpus(self.settings, name, retriever.encoder, chunker=chunker, shared=True)

    async def _put_off(self, corpus: str, group: Sequence[Upload], error: CorpusError) -> None:
        """Let a corpus whose index failed rest; after the last pause its uploads fail."""
        failures = self._failures[corpus] = self._failures.get(corpus, 0) + 1
        _LOG.warning("Uploads to %r failed for the %d. time: %s", corpus, failures, error)
        if failures <= len(_PAUSES_SECONDS):
            self._resting[corpus] = time.monotonic() + _PAUSES_SECONDS[failures - 1]
            await self._change(UPLOADS.c.id.in_([upload.id for upload in group]), state="queued")
            return
        del self._failures[corpus]
        words = "The corpus cannot accept documents at the moment; tell the operator this id."
        for upload in group:
            await self._ended(replace(upload, state="failed", message=words))

    async def _ended(self, upload: Upload) -> None:
        """Note the result of reading an upload, after what it means for others: it replaces those at its place."""
        if upload.state == "indexed":
            await asyncio.to_thread(self._settle, upload)
            words = "A later upload of the same name by this key replaced it."
            for earlier in await self.select(UPLOADS.c.state == "indexed", *_at(upload), UPLOADS.c.id != upload.id):
                await self._change(UPLOADS.c.id == earlier.id, state="replaced", message=words, passages=0)
                await self._read_again(await self._copies(upload.corpus, self.source(upload), [earlier.digest]))
        values = {"state": upload.state, "message": upload.message, "passages": upload.passages}
        await self._change(UPLOADS.c.id == upload.id, **values)
        await asyncio.to_thread(shutil.rmtree, self._arrived(upload).parent, ignore_errors=True)
        self.metrics.documents.labels(upload.state).inc()

    async def _deleted(self, upload: Upload) -> Upload:
        await self._change(UPLOADS.c.id == upload.id, state="deleted", message=None, passages=0)
        await asyncio.to_thread(shutil.rmtree, self._arrived(upload).parent, ignore_errors=True)
        if upload.state == "indexed":
            await asyncio.to_thread(self._original(upload).unlink, missing_ok=True)
        return replace(upload, state="deleted", message=None, passages=0)

    async def _change(self, condition: ColumnElement[bool], **values: Any) -> None:
        async with self.engine.begin() as connection:
            await connection.execute(update(UPLOADS).where(condition).values(**values))

    def _name(self, file: UploadFile) -> str:
        name = safe_name(file.filename or "")
        if "." in name and not name.lower().endswith(self.suffixes):
            kinds = ", ".join(self.suffixes)
            raise RequestError(415, "unsupported_type", f"{name!r} has an unsupported format; send {kinds}.")
        return name

    async def _accepted(self, client: Client, corpus: str, name: str, file: UploadFile) -> Upload:
        """Store a file and its row, unless it is what the corpus has, or is to have, at its place."""
        upload = Upload(id=new_id(), client_id=client.id, corpus=corpus, name=name, digest="", at=datetime.now(UTC))
        path, kept = self._arrived(upload), False
        try:
            upload = replace(upload, digest=await asyncio.to_thread(_written, file, path))
            known = await self._known(upload)
            if known is not None:
                return known
            async with self.engine.begin() as connection:
                await connection.execute(insert(UPLOADS).values(**vars(upload)))
            kept = True
            return upload
        except (OSError, SQLAlchemyError) as error:
            _LOG.error("An upload cannot be stored (%s).", type(error).__name__)
            raise _unavailable() from None
        finally:
            if not kept:
                await asyncio.to_thread(shutil.rmtree, path.parent, ignore_errors=True)

    async def _known(self, upload: Upload) -> Upload | None:
        """The upload of the same content at the same place, if its document is in the corpus, or is to be."""
        earlier = await self.select(UPLOADS.c.state.in_(["queued", "parsing", "indexed"]), *_at(upload))
        if not earlier or earlier[-1].digest != upload.digest:
            return None
        held = {document.content_hash for document in await self.documents(upload.corpus)}
        return earlier[-1] if earlier[-1].state != "indexed" or upload.digest in held else None

    def _arrived(self, upload: Upload) -> Path:
        return self.folder / upload.id / upload.name

    def _original(self, upload: Upload) -> Path:
        return self.folder.resolve().joinpath(*upload.place)

    def _file(self, upload: Upload) -> Path:
        """The file to read: a copy whose turn comes later has been settled already."""
        arrived = self._arrived(upload)
        return arrived if arrived.exists() else self._original(upload)

    def _settle(self, upload: Upload) -> None:
        """Move a file to the place of its document."""
        if self._arrived(upload).exists():
            self._original(upload).parent.mkdir(parents=True, exist_ok=True)
            self._arrived(upload).replace(self._original(upload))

    def _takes_documents(self, corpus: str) -> bool:
        return corpus != SAMPLE and isinstance(self.retrievers[corpus], HybridRetriever)

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


async def uploads_of(engine: AsyncEngine, client_id: str) -> int:
    """The number of uploads of a client."""
    query = select(func.count()).select_from(UPLOADS).where(UPLOADS.c.client_id == client_id)
    async with engine.connect() as connection:
        return int((await connection.execute(query)).scalar_one())


async def forget_uploads(engine: AsyncEngine, data_dir: Path, client_id: str) -> None:
    """Delete the rows of a client's uploads, and their files; what is indexed stays in its corpus."""
    own = delete(UPLOADS).where(UPLOADS.c.client_id == client_id).returning(UPLOADS.c.id)
    async with engine.begin() as connection:
        gone = (await connection.execute(own)).scalars().all()
    for id_ in gone:
        await asyncio.to_thread(shutil.rmtree, data_dir / "uploads" / id_, ignore_errors=True)


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


def _at(upload: Upload) -> tuple[ColumnElement[bool], ...]:
    corpus, client_id, name = upload.place
    return UPLOADS.c.corpus == corpus, UPLOADS.c.client_id == client_id, UPLOADS.c.name == name


def _result(upload: Upload, outcome: FileOutcome, document: DocumentRecord | None) -> Upload:
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
    """The files of a multipart body, within the limits. Raises `RequestError`."""
    most = int(settings.ingest_file_mb * _MEGABYTE)
    kind = request.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        raise RequestError(415, "unsupported_type", "Uploads must be multipart/form-data.")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > most:
        raise _too_large(most)
    late = time.monotonic() + UPLOAD_SECONDS
    limited = Request(request.scope, _limited(request.receive, most, late))
    try:
        form = await limited.form(max_files=MOST_FILES, max_fields=0)
    except HTTPException as error:
        detail = str(error.detail)
        if detail == _LATE:
            words = "The upload takes too long; send less at once, or use a faster connection."
            raise RequestError(408, "upload_too_slow", words) from None
        if detail == _LARGE:
            raise _too_large(most) from None
        if "Too many files" in detail:
            words = f"There are more than {MOST_FILES} files; send fewer at once."
            raise RequestError(413, "too_large", words) from None
        words = f"The body is not multipart/form-data with files named {FIELD!r} alone; send it as such."
        raise RequestError(422, "invalid_request", words) from None
    except OSError as error:
        _LOG.error("An upload cannot be stored (%s).", error.strerror)
        raise _unavailable() from None
    try:
        if not form or any(name != FIELD for name in form):
            raise RequestError(422, "invalid_request", f"Send one or more files, each as {FIELD!r}, and nothing else.")
        files = [file for file in form.getlist(FIELD) if isinstance(file, UploadFile)]
        yield files
    finally:
        await form.close()


def _limited(receive: Receive, most: int, late: float) -> Receive:
    """Receive a body of at most `most` bytes until `late`; raises the error that makes the parser close its files."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        try:
            async with asyncio.timeout(late - time.monotonic()):
                message = await receive()
        except TimeoutError:
            raise MultiPartException(_LATE) from None
        size += len(message.get("body", b""))
        if size > most:
            raise MultiPartException(_LARGE)
        return message

    return limited


def _too_large(most: int) -> RequestError:
    return RequestError(413, "too_large", f"The upload is larger than {most / _MEGABYTE:g} MB; send less.")


def _unavailable() -> RequestError:
    return RequestError(503, "unavailable", "Uploads cannot be stored at the moment; try again later.")


_LONGEST_BYTES = 120
_LONGEST_SUFFIX = 12


def safe_name(given: str) -> str:
    """The last part of a path, without characters that a file system, a header or a terminal could misinterpret.

    >>> safe_name("../../etc/passwd")
    'passwd'
    >>> safe_name("C:\\\\notes\\\\a\\r\\nb.txt")
    'a__b.txt'
    """
    last = re.split(r"[/\\]", given)[-1]
    writable = unicodedata.normalize("NFC", encodable(last))
    plain = "".join("_" if unicodedata.category(character)[0] == "C" else character for character in writable)
    name = re.sub(r'[<>:"|?*]', "_", plain).strip(" .")
    if len(name.encode()) > _LONGEST_BYTES:
        stem, dot, suffix = name.rpartition(".")
        ending = f".{suffix}" if dot and len(suffix) <= _LONGEST_SUFFIX else ""
        kept = (stem if ending else name).encode()[: _LONGEST_BYTES - len(ending.encode())]
        name = kept.decode("utf-8", "ignore").strip(" .") + ending
    return name or "document"

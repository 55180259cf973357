"""Documents sent by clients: stored, then added to their corpora in the background.

An upload is a row of the table `uploads` and the file `<data_dir>/uploads/<key>/<corpus>/<name>`, which a later upload
of the same name replaces, as does its document. Whoever holds the lock of that folder edits corpora.
"""

import asyncio
import logging
import os
import re
import shutil
import time
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

from filelock import AsyncFileLock, Timeout
from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from starlette.datastructures import UploadFile

from ..errors import CorpusError, RequestError
from ..ingestion.parsers import known_suffixes
from ..ingestion.pipeline import chunking_of, take_in
from ..ingestion.sources import FileOutcome, FoundFile, file_hash, source_name
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.editing import CorpusEditor, edit_corpus
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import HybridRetriever, Retriever
from ..settings import Settings
from .access import Client
from .database import UPLOADS
from .failures import refusal
from .request import new_id

_LOG = logging.getLogger(__name__)
_REST_SECONDS = 15.0
"""How long a corpus rests after it has failed."""
_TRIES = 40
"""How often a corpus may fail before its waiting uploads fail: a server that restarts has ten minutes."""
_LOOK_SECONDS = 1.0
_TURN_SECONDS = 0.1
"""Between two groups: a deletion that waits for the lock looks at it more often."""
_TOGETHER = 16
"""The number of documents of one corpus that are read and published together."""
_LONGEST = 200
"""Bytes of a file name."""
State: TypeAlias = Literal["queued", "indexed", "failed"]


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


@dataclass(kw_only=True)
class Uploads:
    """The uploads of all clients, and the work on them.

    Of a corpus that has failed, `_failed` has the number of failures and the `time.monotonic` of the next attempt.
    """

    settings: Settings
    engine: AsyncEngine
    retrievers: Mapping[str, Retriever]
    _new: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _failed: dict[str, tuple[int, float]] = field(default_factory=dict, repr=False)

    @property
    def folder(self) -> Path:
        """The folder of all files."""
        return self.settings.marag_data_dir.resolve() / "uploads"

    def file(self, upload: Upload) -> Path:
        """The file of an upload, whose name is also the source of its document."""
        return self.folder / upload.client_id / upload.corpus / upload.name

    async def accept(self, files: Sequence[UploadFile], client: Client, corpus: str | None) -> list[Upload]:
        """Store files. Raises `RequestError`: 404 or 409 for the corpus, 415 for an unsupported format."""
        wanted = client.corpus(corpus, self.retrievers)
        if wanted == SAMPLE or not isinstance(self.retrievers[wanted], HybridRetriever):
            raise RequestError(409, "read_only", f"The corpus {wanted!r} cannot be changed; name another one.")
        names, suffixes = [safe_name(file.filename or "") for file in files], known_suffixes()
        for name in names:
            if "." in name and not name.lower().endswith(suffixes):
                words = f"{name!r} has an unsupported format; send {', '.join(suffixes)}."
                raise RequestError(415, "unsupported_type", words)
        accepted = [await self._stored(client, wanted, *item) for item in zip(names, files, strict=True)]
        self._new.set()
        return accepted

    async def select(self, *conditions: ColumnElement[bool]) -> list[Upload]:
        """Uploads, the oldest first."""
        query = select(UPLOADS).where(*conditions).order_by(UPLOADS.c.at, UPLOADS.c.id)
        async with self.engine.connect() as connection:
            return [Upload(**row._mapping) for row in await connection.execute(query)]

    async def documents(self, corpus: str) -> dict[str, DocumentRecord]:
        """The documents of a served corpus by source. Raises `RequestError` if it has no list of them."""
        retriever = self.retrievers[corpus]
        if not isinstance(retriever, HybridRetriever):
            raise RequestError(404, "not_found", f"The corpus {corpus!r} has no list of documents.")
        return {one.source: one for one in await asyncio.to_thread(retriever.corpus.documents)}

    async def delete(self, upload: Upload, patience: float) -> None:
        """Remove an upload, with its document and its file.

        Raises `RequestError`: 409 for the last document of a corpus, 503 if corpora are still being edited after
        `patience` seconds.
        """
        try:
            async with self._editing(patience):
                await self._remove(upload)
                async with self._writing() as connection:
                    gone = await connection.execute(delete(UPLOADS).where(_same(upload)))
                    if gone.rowcount:  # else the file is that of a newer upload
                        self.file(upload).unlink(missing_ok=True)
        except Timeout:
            words = "The corpus is being changed at the moment; delete the document later."
            raise RequestError(503, "overloaded", words, retry_after=30) from None

    async def keep_reading(self) -> None:
        """Read waiting uploads until cancelled, whenever no other process of this data folder does."""
        while True:
            self._new.clear()
            try:
                async with self._editing(0):
                    if group := await self._next():
                        await self._read(group)
                if group:
                    await asyncio.sleep(_TURN_SECONDS)
                    continue
            except Timeout:
                pass
            except (SQLAlchemyError, OSError) as error:
                _LOG.error("Uploads cannot be read at the moment (%s).", type(error).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._new.wait()

    def _editing(self, patience: float) -> AsyncFileLock:
        self.folder.mkdir(parents=True, exist_ok=True)
        return AsyncFileLock(self.folder / "lock", timeout=patience)

    def _writing(self) -> AbstractAsyncContextManager[AsyncConnection]:
        return self.engine.execution_options(immediate=True).begin()

    async def _next(self) -> list[Upload]:
        """The oldest waiting uploads of a corpus that is not resting; their files may be on another machine."""
        now = time.monotonic()
        ready = [corpus for corpus in self.retrievers if self._failed.get(corpus, (0, now))[1] <= now]
        queued = await self.select(UPLOADS.c.state == "queued", UPLOADS.c.corpus.in_(ready))
        waiting = [upload for upload in queued if self.file(upload).exists()]
        return [upload for upload in waiting if upload.corpus == waiting[0].corpus][:_TOGETHER]

    async def _read(self, group: Sequence[Upload]) -> None:
        """Add uploads to their corpus, and note how that ended; while the corpus fails, they stay queued."""
        corpus = group[0].corpus
        files = {source_name(self.file(upload)): self.file(upload) for upload in group}
        found = [FoundFile(path=path, source=source, named=True) for source, path in files.items()]
        try:
            before = await self.documents(corpus)
            outcomes = {one.source: one for one in await take_in(self.settings, found, self._edit(corpus))}
            after = await self.documents(corpus)
        except Exception as error:  # noqa: BLE001  # in any case, the next ones are read
            failures = self._failed.pop(corpus, (0, 0.0))[0] + 1
            _LOG.error("Uploads to %r failed: %s: %s", corpus, type(error).__name__, error)
            if isinstance(error, CorpusError) and failures < _TRIES:
                self._failed[corpus] = (failures, time.monotonic() + _REST_SECONDS)
                return
            words = "The corpus could not be changed; ask the service's operator, and send the file again."
            message = words if isinstance(error, CorpusError) else str(refusal(error))
            for upload in group:
                await self._ended(replace(upload, state="failed", message=message))
            return
        self._failed.pop(corpus, None)
        for source, upload in zip(files, group, strict=True):
            await self._ended(_result(upload, outcomes[source], after.get(source)))
        gone = {before[source].content_hash for source in files if source in before}
        await self._read_again(corpus, gone - {document.content_hash for document in after.values()})

    async def _ended(self, upload: Upload) -> None:
        """Note the result for an upload, unless it was replaced meanwhile."""
        values = {"state": upload.state, "message": upload.message, "passages": upload.passages}
        async with self._writing() as connection:
            await connection.execute(update(UPLOADS).where(_same(upload)).values(**values))

    async def _read_again(self, corpus: str, digests: set[str]) -> None:
        """Queue the uploads with a content that has left its corpus with another document."""
        copies = (UPLOADS.c.corpus == corpus) & UPLOADS.c.digest.in_(digests) & (UPLOADS.c.state == "indexed")
        async with self._writing() as connection:
            await connection.execute(update(UPLOADS).where(copies).values(state="queued", message=None))
        self._new.set()

    async def _remove(self, upload: Upload) -> None:
        """Remove the document of an upload. Raises `RequestError` (409) for the last document of a corpus."""
        documents = await self.documents(upload.corpus)
        gone = documents.get(source_name(self.file(upload)))
        if gone is None:
            return
        if len(documents) == 1:
            words = f"The corpus {upload.corpus!r} has no other document; add one before you delete this one."
            raise RequestError(409, "last_document", words)
        async with self._edit(upload.corpus) as editor:
            await editor.remove([gone.id])
        await self._read_again(upload.corpus, {gone.content_hash})

    def _edit(self, corpus: str) -> AbstractAsyncContextManager[CorpusEditor]:
        retriever = self.retrievers[corpus]
        assert isinstance(retriever, HybridRetriever)
        chunker = chunking_of(self.settings).name
        return edit_corpus(self.settings, corpus, retriever.encoder, chunker=chunker, shared=True)

    async def _stored(self, client: Client, corpus: str, name: str, file: UploadFile) -> Upload:
        """Store a file and its row, as one step for whoever deletes it; both replace an earlier upload's."""
        upload = Upload(id=new_id(), client_id=client.id, corpus=corpus, name=name, digest="", at=datetime.now(UTC))
        path = self.file(upload)
        part = path.with_name(f".{upload.id}")
        try:
            upload = replace(upload, digest=await asyncio.to_thread(_written, file, part))
            insert = (postgresql.insert if self.engine.dialect.name == "postgresql" else sqlite.insert)(UPLOADS)
            newer = {name: value for name, value in vars(upload).items() if name != "id"}
            own = ["client_id", "corpus", "name"]
            statement = insert.values(**vars(upload)).on_conflict_do_update(index_elements=own, set_=newer)
            async with self._writing() as connection:
                id_ = (await connection.execute(statement.returning(UPLOADS.c.id))).scalar_one()
                os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        return replace(upload, id=id_)


@asynccontextmanager
async def open_uploads(
    settings: Settings, engine: AsyncEngine, retrievers: Mapping[str, Retriever]
) -> AsyncIterator[Uploads]:
    """The uploads, read while they are open; unfinished work continues at the next start."""
    uploads = Uploads(settings=settings, engine=engine, retrievers=retrievers)
    reading = asyncio.create_task(uploads.keep_reading())
    try:
        yield uploads
    finally:
        reading.cancel()
        await asyncio.wait({reading})


def _same(upload: Upload) -> ColumnElement[bool]:
    """The row of an upload, unless a newer one has replaced it."""
    return (UPLOADS.c.id == upload.id) & (UPLOADS.c.digest == upload.digest) & (UPLOADS.c.at == upload.at)


def _result(upload: Upload, outcome: FileOutcome, document: DocumentRecord | None) -> Upload:
    """How reading an upload ended; without a document of its own, another one has the same content."""
    if outcome.status == "skipped" and (outcome.broken or outcome.refusal is not None):
        return replace(upload, state="failed", message=f"{upload.name!r} was rejected: {outcome.reason}.")
    if document is None:
        words = "The corpus already has this content in another document."
        return replace(upload, state="indexed", message=words, passages=0)
    message = outcome.reason and f"{outcome.reason[0].upper()}{outcome.reason[1:].rstrip('.')}."
    return replace(upload, state="indexed", message=message, passages=document.passages)


def _written(file: UploadFile, path: Path) -> str:
    """Write a received file; returns its hash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as target:
        shutil.copyfileobj(file.file, target)
    return file_hash(path)


def safe_name(given: str) -> str:
    """The end of a path, without characters that a file system, a header or a terminal could misinterpret.

    >>> safe_name("../../etc/passwd")
    'passwd'
    >>> safe_name("C:\\\\notes\\\\a\\r\\nb.txt")
    'a__b.txt'
    """
    last = unicodedata.normalize("NFC", re.split(r"[/\\]", given)[-1])
    unsafe = [one in '<>:"|?*' or unicodedata.category(one)[0] == "C" for one in last]
    name = "".join("_" if bad else one for bad, one in zip(unsafe, last, strict=True)).strip(" .")
    if len(whole := name.encode()) > _LONGEST:  # by its digest, names that share their end stay different
        name = f"{sha256(whole).hexdigest()[:8]}-{whole[9 - _LONGEST :].decode('utf-8', 'ignore')}"
    return name or "document"

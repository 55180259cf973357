"""Ingests files into a corpus: new and changed ones are parsed in a child process while earlier files are encoded."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from ..errors import CorpusError, InputError
from ..extras import require
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.corpus import corpus_folder, read_documents
from ..retrieval.corpus.editing import CorpusEditor, edit_corpus
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.passage import Passage
from ..retrieval.screening import left_out
from ..settings import Settings
from .child import Job
from .chunkers import ChunkingOptions, prepared
from .document import ReadFile, Refused
from .isolation import IsolatedReader
from .parsers import known_suffixes
from .plan import IngestPlan, PlannedFile, plan_for
from .report import FileOutcome, IngestProgress, IngestReport, Status
from .rows import is_rows, read_rows
from .sources import FoundFile, SourceFiles, file_hash, find_files
from .token_counting import encoder_folder, encoder_limit, passage_prefix

OnProgress: TypeAlias = Callable[[IngestProgress], None]
_READ_AHEAD = 8
"""The number of parsed files that wait while earlier ones are encoded."""
_MEGABYTE = 1024 * 1024
_UNPACKED = 4
"""The factor by which a line of JSON, or a packed file of them, may exceed the largest file."""


async def ingest(
    settings: Settings,
    paths: Sequence[Path],
    corpus: str,
    *,
    encoder: AsyncEncoder,
    prune: bool = False,
    rebuild: bool = False,
    on_cluster: bool = False,
    on_progress: OnProgress | None = None,
) -> IngestReport:
    """Ingest the files in `paths` into `corpus`, which is created if missing.

    A file with known content is skipped, a changed one replaces its own passages, a broken one is
    skipped and keeps its earlier version. `prune` removes documents whose files no longer exist in the
    given folders; `rebuild` rebuilds the corpus from `paths` only; `on_cluster` reads the files on the nodes of a Ray
    cluster. After an interruption, the same call
    continues. Raises `InputError` for paths that do not exist or contain no files (with `rebuild`: none that can
    be read), `SettingsError` for the chunker's settings, `CorpusError` if the corpus was built differently
    or is in use.
    """
    began = time.monotonic()
    found = await asyncio.to_thread(files_for, settings, paths, corpus, gone_too=prune)
    options = await asyncio.to_thread(chunking_options, settings, encoder.name)
    chunking = prepared(options)
    tracker = _Tracker(of_files=len(found.files), on_progress=on_progress)
    reader = await asyncio.to_thread(_reader, settings, options, on_cluster=on_cluster)
    try:
        async with edit_corpus(
            settings, corpus, encoder, chunker=chunking.name, rebuild=rebuild, on_progress=tracker.encoded
        ) as editor:
            outcomes = await _Ingestion(settings, editor, reader, tracker).run(found, prune=prune)
            if rebuild:
                _require_any(outcomes, corpus)  # an error within the edit keeps the earlier corpus
    finally:
        reader.close()
    return IngestReport(
        corpus=corpus, outcomes=outcomes, encoded=tracker.progress.passages, seconds=time.monotonic() - began
    )


def files_for(settings: Settings, paths: Sequence[Path], corpus: str, *, gone_too: bool) -> SourceFiles:
    """The files in `paths`; raises `InputError` for an invalid corpus name, and for paths like `ingest`."""
    corpus_folder(settings.marag_data_dir, corpus)
    if corpus == SAMPLE:
        raise InputError(f"{SAMPLE!r} is the packaged corpus; choose another name.")
    found = find_files(paths, without=settings.marag_data_dir, gone_too=gone_too)
    if not found.files and not gone_too:
        passed = "".join(f" ({one.source!r}: {one.reason})" for one in found.passed_over[:1])
        raise InputError(f"No files to read in {', '.join(map(repr, map(str, paths)))}{passed}; give other paths.")
    if not any(path.exists() for path in paths) and not _has_documents(settings, corpus, found):
        raise InputError(
            f"{str(paths[0])!r} does not exist, and the corpus {corpus!r} has no document from it; check the path."
        )
    return found


def _has_documents(settings: Settings, corpus: str, found: SourceFiles) -> bool:
    """Does the corpus have documents from the given folders?"""
    try:
        documents = read_documents(settings.marag_data_dir, corpus)
    except CorpusError:
        return False
    return any(found.covers(document.source) for document in documents)


async def take_in(
    settings: Settings,
    files: Sequence[FoundFile],
    options: ChunkingOptions,
    edit: AbstractAsyncContextManager[CorpusEditor],
) -> tuple[FileOutcome, ...]:
    """Ingest only these files into a corpus, in a new edit. Raises the errors of the edit."""
    reader = _reader(settings, options)
    try:
        async with edit as editor:
            found = SourceFiles(files=tuple(files), passed_over=(), folders=())
            tracker = _Tracker(of_files=len(files), on_progress=None)
            return await _Ingestion(settings, editor, reader, tracker).run(found, prune=False)
    finally:
        reader.close()


class _Reader(Protocol):
    """Reads up to `at_once` files at a time."""

    at_once: int

    async def read(self, path: Path, doc_id: str) -> ReadFile: ...

    def close(self) -> None: ...


def _reader(settings: Settings, options: ChunkingOptions, *, on_cluster: bool = False) -> _Reader:
    require("ingest", "Reading documents")
    job = Job(
        seconds=settings.ingest_seconds,
        memory_mb=settings.ingest_memory_mb,
        file_mb=settings.ingest_file_mb,
        chunking=options,
    )
    if not on_cluster:
        return IsolatedReader(job)
    from .cluster import ClusterReader

    return ClusterReader(job)


def chunking_options(settings: Settings, encoder_name: str) -> ChunkingOptions:
    """How settings and encoder require documents to be split. May contact the hub for the encoder, like opening it."""
    folder = None if settings.chunker == "characters" else encoder_folder(settings, encoder_name)
    return ChunkingOptions(
        chunker=settings.chunker,
        characters=settings.chunk_characters,
        overlap=settings.chunk_overlap,
        encoder_folder=str(folder) if folder is not None else None,
        passage_prefix=passage_prefix(folder, encoder_name),
        token_limit=encoder_limit(folder),
    )


class _Tracker:
    """Collects and reports the progress."""

    def __init__(self, *, of_files: int, on_progress: OnProgress | None) -> None:
        self.progress = IngestProgress(files=0, of_files=of_files, passages=0, of_passages=0)
        self._on_progress = on_progress

    def encoded(self, done: int, wanted: int) -> None:
        self._tell(replace(self.progress, passages=done, of_passages=wanted))

    def file_done(self) -> None:
        self._tell(replace(self.progress, files=self.progress.files + 1))

    def _tell(self, progress: IngestProgress) -> None:
        self.progress = progress
        if self._on_progress is not None:
            self._on_progress(progress)


@dataclass(frozen=True, kw_only=True)
class _Read:
    """A parsed file that is being added to the corpus."""

    step: PlannedFile
    reading: ReadFile


class _Ingestion:
    """One run over one corpus."""

    def __init__(self, settings: Settings, editor: CorpusEditor, reader: _Reader, tracker: _Tracker) -> None:
        self._settings = settings
        self._editor = editor
        self._reader = reader
        self._tracker = tracker

    async def run(self, found: SourceFiles, *, prune: bool) -> tuple[FileOutcome, ...]:
        """The whole run; outcomes of files that need no reading come first, then those of the files in order."""
        outcomes = [
            FileOutcome(source=passed.source, status="skipped", reason=passed.reason, broken=passed.broken)
            for passed in found.passed_over
        ]
        documents = self._editor.documents()
        stays = {document.source for document in documents}
        hashes, refusals = await asyncio.to_thread(self._hashes, found)
        for file, refused in refusals:
            outcomes.append(_skipped(file, refused, file.source in stays))
            self._tracker.file_done()
        plan = await asyncio.to_thread(plan_for, found, hashes, documents)
        outcomes.extend(await self._take_leave(plan, prune=prune))
        async with aclosing(_ahead(self._read(plan, stays))) as items:
            async for item in items:
                outcomes.append(await self._put(item, stays) if isinstance(item, _Read) else item)
                self._tracker.file_done()
        return tuple(outcomes)

    def _hashes(self, found: SourceFiles) -> tuple[dict[str, str], list[tuple[FoundFile, Refused]]]:
        """The hash of each file that may be read, by source, and the reasons for the others."""
        hashes: dict[str, str] = {}
        refusals: list[tuple[FoundFile, Refused]] = []
        most = self._settings.ingest_file_mb
        for file in found.files:
            try:
                if file.path.stat().st_size > most * _MEGABYTE and not is_rows(file.path):
                    reason = f"it is larger than {most:g} MB; split it, or raise INGEST_FILE_MB"
                    refusals.append((file, Refused("limit", reason)))
                else:
                    hashes[file.source] = file_hash(file.path)
            except OSError as error:
                refusals.append((file, Refused("unreadable", f"it cannot be opened ({error.strerror})")))
        return hashes, refusals

    async def _take_leave(self, plan: IngestPlan, *, prune: bool) -> list[FileOutcome]:
        """Remove documents that became copies of others and, with `prune`, those whose files no longer exist."""
        leaving = [*plan.copies, *(plan.gone if prune else ())]
        if leaving:
            await self._editor.remove([document.id for document in leaving])
        reason = None if prune else "its file no longer exists; --prune removes it"
        status: Status = "pruned" if prune else "gone"
        return [
            FileOutcome(source=document.source, status=status, reason=reason, passages=document.passages)
            for document in plan.gone
        ]

    async def _read(self, plan: IngestPlan, stays: set[str]) -> AsyncGenerator[_Read | FileOutcome, None]:
        refusals: dict[str, Refused] = {}
        async with aclosing(self._started(plan.steps)) as started:
            async for step, reading in started:
                if step.same_as in refusals:
                    yield _skipped(step.file, refusals[step.same_as], step.file.source in stays)
                elif step.same_as is not None:
                    yield FileOutcome(
                        source=step.file.source, status="skipped", reason=f"it has the same content as {step.same_as!r}"
                    )
                elif reading is None:
                    yield FileOutcome(source=step.file.source, status="unchanged", passages=step.passages)
                else:
                    try:
                        yield _Read(step=step, reading=await reading)
                    except Refused as refused:
                        refusals[step.file.source] = refused
                        yield _skipped(step.file, refused, step.file.source in stays)

    async def _started(
        self, steps: Sequence[PlannedFile]
    ) -> AsyncGenerator[tuple[PlannedFile, "asyncio.Task[ReadFile] | None"], None]:
        """The steps in order, each with its reading if it needs one; as many are begun as the reader can take."""
        begun: deque[tuple[PlannedFile, asyncio.Task[ReadFile] | None]] = deque()
        try:
            for step in steps:
                reads = step.same_as is None and step.status != "unchanged"
                read = asyncio.create_task(self._read_file(step)) if reads else None
                begun.append((step, read))
                if len(begun) >= self._reader.at_once:
                    yield begun.popleft()
            while begun:
                yield begun.popleft()
        finally:
            waiting = [read for _, read in begun if read is not None]
            for read in waiting:
                read.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _read_file(self, step: PlannedFile) -> ReadFile:
        """Passages from JSON lines in a thread, everything else in a child process. Raises `Refused`."""
        path = step.file.path
        try:
            by_rows = await asyncio.to_thread(is_rows, path)
        except OSError as error:
            raise Refused("unreadable", f"it cannot be opened ({error.strerror})") from error
        if by_rows:
            return await asyncio.to_thread(read_rows, path, _UNPACKED * int(self._settings.ingest_file_mb * _MEGABYTE))
        return await self._reader.read(path, step.doc_id)

    async def _put(self, read: _Read, stays: set[str]) -> FileOutcome:
        step, reading = read.step, read.reading
        if reading.kind == "passages":
            taken = await asyncio.to_thread(self._editor.taken, step.doc_id, reading.passages)
            if taken is not None:
                refused = Refused("unreadable", f"its passage id {taken[0]!r} belongs to the document {taken[1]!r}")
                return _skipped(step.file, refused, step.file.source in stays)
        record = DocumentRecord(
            id=step.doc_id,
            source=step.file.source,
            title=reading.title,
            kind=reading.kind,
            content_hash=reading.content_hash,
            pages=reading.pages,
            aliases=reading.aliases,
        )
        await self._editor.put(record, reading.passages)
        return FileOutcome(
            source=step.file.source,
            status=step.status,
            reason="; ".join(filter(None, (*reading.notes, await self._left_out(reading.passages)))) or None,
            passages=len(reading.passages),
        )

    async def _left_out(self, passages: Collection[Passage]) -> str | None:
        return await asyncio.to_thread(left_out, passages) if self._settings.screening else None


def _require_any(outcomes: Sequence[FileOutcome], corpus: str) -> None:
    if any(outcome.status in {"added", "unchanged", "replaced", "moved"} for outcome in outcomes):
        return
    first = outcomes[0]
    raise InputError(
        f"None of {len(outcomes)} files could be read (the first, {first.source!r}: {first.reason}); "
        f"the corpus {corpus!r} is unchanged; check the files."
    )


def _skipped(file: FoundFile, refused: Refused, stays: bool) -> FileOutcome:
    """The outcome of a rejected file. An unsupported format is only a fault if the name claims a supported one."""
    reason = f"{refused.reason}; its earlier version is kept" if stays else refused.reason
    claims = file.named or file.path.name.lower().endswith(known_suffixes())
    return FileOutcome(
        source=file.source, status="skipped", reason=reason, refusal=refused.kind,
        broken=claims or refused.kind != "type",
    )  # fmt: skip


async def _ahead(items: AsyncIterator[_Read | FileOutcome]) -> AsyncGenerator[_Read | FileOutcome, None]:
    """The same items, a few of which are produced while earlier ones are processed."""
    queue: asyncio.Queue[_Read | FileOutcome | None] = asyncio.Queue()
    room = asyncio.Semaphore(_READ_AHEAD)

    async def fill() -> None:
        try:
            async for item in items:
                queue.put_nowait(item)
                await room.acquire()
        finally:
            queue.put_nowait(None)

    filling = asyncio.create_task(fill())
    try:
        while (item := await queue.get()) is not None:
            yield item
            room.release()
        await filling
    finally:
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)

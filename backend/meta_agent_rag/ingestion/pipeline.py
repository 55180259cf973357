"""Ingests files into a corpus: new and changed ones are parsed in a child process while earlier files are encoded."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ..errors import CorpusError, InputError
from ..extras import require
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.corpus import corpus_folder, read_documents
from ..retrieval.corpus.editing import CorpusEditor, edit_corpus
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.encoders.loading import load_encoder
from ..retrieval.screening import left_out
from ..settings import Settings
from .child import Job
from .chunkers import ChunkingOptions, prepared
from .chunkers.sentence import encoder_limit
from .document import ReadFile, Refused
from .isolation import IsolatedReader
from .parsers import known_suffixes
from .rows import is_rows, read_rows
from .sources import (
    FileOutcome,
    FoundFile,
    IngestProgress,
    IngestReport,
    PlannedFile,
    SourceFiles,
    file_hash,
    find_files,
    plan_for,
)

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
    on_progress: OnProgress | None = None,
) -> IngestReport:
    """Ingest the files in `paths` into `corpus`, which is created if missing.

    A file with known content is skipped, a changed one replaces its own passages, a broken one is
    skipped and keeps its earlier version. `prune` removes documents whose files no longer exist in the
    given folders; `rebuild` rebuilds the corpus from `paths` only. After an interruption, the same call
    continues; a rebuild begins again. Raises `InputError` for paths that do not exist or contain no files (with
    `rebuild`: none that can be read), `SettingsError` for the chunker's settings, `CorpusError` if the corpus was built
    differently or is in use.
    """
    began = time.monotonic()
    found = await asyncio.to_thread(files_for, settings, paths, corpus, gone_too=prune)
    options = await asyncio.to_thread(chunking_options, settings, encoder.name)
    chunking = prepared(options)
    reader = await asyncio.to_thread(_reader, settings, options)
    progress = _Progress(len(found.files), on_progress)
    try:
        async with edit_corpus(
            settings, corpus, encoder, chunker=chunking.name, rebuild=rebuild, on_progress=progress.encoded
        ) as editor:
            outcomes = await _Ingestion(settings, editor, reader, progress).run(found, prune=prune)
            if rebuild and not any(
                outcome.status in {"added", "unchanged", "replaced", "moved"} for outcome in outcomes
            ):
                raise InputError(  # within the edit, so that the earlier corpus is kept
                    f"None of {len(outcomes)} files could be read (the first, {outcomes[0].source!r}: "
                    f"{outcomes[0].reason}); the corpus {corpus!r} is unchanged; check the files."
                )
    finally:
        reader.close()
    return IngestReport(
        corpus=corpus, outcomes=outcomes, encoded=progress.now.passages, seconds=time.monotonic() - began
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
    if not any(path.exists() for path in paths):
        try:
            documents = read_documents(settings.marag_data_dir, corpus)
        except CorpusError:
            documents = ()
        if not any(found.covers(document.source) for document in documents):
            raise InputError(
                f"{str(paths[0])!r} does not exist, and the corpus {corpus!r} has no document from it; check the path."
            )
    return found


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
            ingestion = _Ingestion(settings, editor, reader, _Progress(len(files), None))
            return await ingestion.run(SourceFiles(files=tuple(files)), prune=False)
    finally:
        reader.close()


def _reader(settings: Settings, options: ChunkingOptions) -> IsolatedReader:
    require("ingest", "Reading documents")
    job = Job(
        seconds=settings.ingest_seconds,
        memory_mb=settings.ingest_memory_mb,
        file_mb=settings.ingest_file_mb,
        chunking=options,
    )
    return IsolatedReader(job)


def chunking_options(settings: Settings, encoder_name: str) -> ChunkingOptions:
    """How settings and encoder require documents to be split. May contact the hub for the encoder, like opening it."""
    folder = None
    if settings.chunker != "characters" and not encoder_name.startswith("hash-"):
        folder = getattr(load_encoder(settings, encoder_name).encoder, "folder", None)
    return ChunkingOptions(
        chunker=settings.chunker,
        characters=settings.chunk_characters,
        overlap=settings.chunk_overlap,
        encoder_folder=str(folder) if folder is not None else None,
        token_limit=encoder_limit(folder),
    )


class _Progress:
    """Collects and reports the progress."""

    def __init__(self, of_files: int, on_progress: OnProgress | None) -> None:
        self.now = IngestProgress(files=0, of_files=of_files, passages=0, of_passages=0)
        self._on_progress = on_progress

    def encoded(self, done: int, wanted: int) -> None:
        self._tell(replace(self.now, passages=done, of_passages=wanted))

    def file_done(self) -> None:
        self._tell(replace(self.now, files=self.now.files + 1))

    def _tell(self, progress: IngestProgress) -> None:
        self.now = progress
        if self._on_progress is not None:
            self._on_progress(progress)


class _Ingestion:
    """One run over one corpus. Outcomes of files that need no reading come first, then those of the files in order."""

    def __init__(self, settings: Settings, editor: CorpusEditor, reader: IsolatedReader, progress: _Progress) -> None:
        self._settings = settings
        self._editor = editor
        self._reader = reader
        self._progress = progress
        self._turn = asyncio.Lock()
        self._outcomes: list[FileOutcome] = []
        self._kept = {document.source for document in editor.documents()}
        self._refusals: dict[str, Refused] = {}

    async def run(self, found: SourceFiles, *, prune: bool) -> tuple[FileOutcome, ...]:
        """The whole run."""
        self._outcomes += found.passed_over
        hashes, refusals = await asyncio.to_thread(self._hashes, found)
        for file, refused in refusals:
            self._skip(file, refused)
        plan = await asyncio.to_thread(plan_for, found, hashes, self._editor.documents())
        leaving = [*plan.copies, *(plan.gone if prune else ())]
        if leaving:
            await self._editor.remove([document.id for document in leaving])
        for document in plan.gone:
            self._outcomes.append(
                FileOutcome(
                    source=document.source,
                    status="pruned" if prune else "gone",
                    reason=None if prune else "its file no longer exists; --prune removes it",
                    passages=document.passages,
                )
            )
        await self._take(plan.steps)
        return tuple(self._outcomes)

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

    async def _take(self, steps: Sequence[PlannedFile]) -> None:
        """Add the files in order; some are read while earlier ones are encoded."""
        waiting = iter(steps)
        begun: deque[tuple[PlannedFile, asyncio.Task[ReadFile] | None]] = deque()
        try:
            while True:
                while len(begun) < _READ_AHEAD and (step := next(waiting, None)) is not None:
                    reads = step.same_as is None and step.status != "unchanged"
                    begun.append((step, asyncio.create_task(self._read(step)) if reads else None))
                if not begun:
                    return
                step, reading = begun.popleft()
                if step.same_as in self._refusals:
                    self._skip(step.file, self._refusals[step.same_as])
                    continue
                if reading is None:
                    reason = None if step.same_as is None else f"it has the same content as {step.same_as!r}"
                    done = FileOutcome(
                        source=step.file.source, status=step.status, reason=reason, passages=step.passages
                    )
                    self._outcomes.append(done)
                else:
                    try:
                        await self._put(step, await reading)
                    except Refused as refused:
                        self._refusals[step.file.source] = refused
                        self._skip(step.file, refused)
                        continue
                self._progress.file_done()
        finally:
            tasks = [task for _, task in begun if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, step: PlannedFile) -> ReadFile:
        """Passages from JSON lines in a thread, everything else in a child process. Raises `Refused`."""
        path = step.file.path
        async with self._turn:
            try:
                by_rows = await asyncio.to_thread(is_rows, path)
            except OSError as error:
                raise Refused("unreadable", f"it cannot be opened ({error.strerror})") from error
            if by_rows:
                most = _UNPACKED * int(self._settings.ingest_file_mb * _MEGABYTE)
                return await asyncio.to_thread(read_rows, path, most)
            return await self._reader.read(path, step.doc_id)

    async def _put(self, step: PlannedFile, reading: ReadFile) -> None:
        """Add a file that was read. Raises `Refused` if one of its passages belongs to another document."""
        if reading.kind == "passages":
            taken = await asyncio.to_thread(self._editor.taken, step.doc_id, reading.passages)
            if taken is not None:
                raise Refused("unreadable", f"its passage id {taken[0]!r} belongs to the document {taken[1]!r}")
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
        screened = await asyncio.to_thread(left_out, reading.passages) if self._settings.screening else None
        outcome = FileOutcome(
            source=step.file.source,
            status=step.status,
            reason="; ".join(filter(None, (*reading.notes, screened))) or None,
            passages=len(reading.passages),
        )
        self._outcomes.append(outcome)

    def _skip(self, file: FoundFile, refused: Refused) -> None:
        """Report a rejected file. An unsupported format is only a fault if the name claims a supported one."""
        claims = file.named or file.path.name.lower().endswith(known_suffixes())
        kept = "; its earlier version is kept" if file.source in self._kept else ""
        self._outcomes.append(
            FileOutcome(
                source=file.source,
                status="skipped",
                reason=f"{refused.reason}{kept}",
                refusal=refused.kind,
                broken=claims or refused.kind != "type",
            )
        )
        self._progress.file_done()

"""Ingests files into a corpus: new and changed ones are parsed in a child process while earlier files are encoded."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

from ..errors import CorpusError, InputError, SettingsError
from ..extras import require
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.corpus import corpus_folder, read_documents
from ..retrieval.corpus.editing import CorpusEditor, Progress, edit_corpus
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.screening import left_out
from ..settings import Settings
from .chunking import Chunking
from .document import ReadFile, Refused
from .isolation import IsolatedReader, Job
from .parsers import known_suffixes
from .rows import is_rows, read_rows
from .sources import (
    FileOutcome,
    FoundFile,
    IngestReport,
    PlannedFile,
    SourceFiles,
    Status,
    file_hash,
    find_files,
    plan_for,
)

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
    on_progress: Progress | None = None,
) -> IngestReport:
    """Ingest the files in `paths` into `corpus`, which is created if missing; `on_progress` is that of `edit_corpus`.

    A file with known content is skipped, a changed one replaces its own passages, a broken one is
    skipped and keeps its earlier version. `prune` removes documents whose files no longer exist in the
    given folders; `rebuild` rebuilds the corpus from `paths` only. After an interruption, the same call
    continues; a rebuild begins again. Raises `InputError` for paths that do not exist or contain no files (with
    `rebuild`: none that can be read), `SettingsError` for the chunker's settings, `CorpusError` if the corpus was built
    differently or is in use.
    """
    began = time.monotonic()
    found = await asyncio.to_thread(files_for, settings, paths, corpus, prune=prune)
    chunking = chunking_of(settings)
    encoded = 0

    def progressed(done: int, wanted: int) -> None:
        nonlocal encoded
        encoded = done
        if on_progress is not None:
            on_progress(done, wanted)

    async with edit_corpus(
        settings, corpus, encoder, chunker=chunking.name, rebuild=rebuild, on_progress=progressed
    ) as editor:
        outcomes = await _Ingestion(settings, editor, chunking).run(found, prune=prune)
        if rebuild and not any(outcome.status in {"added", "unchanged", "replaced", "moved"} for outcome in outcomes):
            raise InputError(  # within the edit, so that the earlier corpus is kept
                f"None of {len(outcomes)} files could be read (the first, {outcomes[0].source!r}: "
                f"{outcomes[0].reason}); the corpus {corpus!r} is unchanged; check the files."
            )
    return IngestReport(corpus=corpus, outcomes=outcomes, encoded=encoded, seconds=time.monotonic() - began)


def files_for(settings: Settings, paths: Sequence[Path], corpus: str, *, prune: bool) -> SourceFiles:
    """The files in `paths`; raises `InputError` for an invalid corpus name, and for paths like `ingest`."""
    corpus_folder(settings.marag_data_dir, corpus)
    if corpus == SAMPLE:
        raise InputError(f"{SAMPLE!r} is the packaged corpus; choose another name.")
    known: list[str] = []
    if prune:  # what has vanished as a whole is still to be pruned
        with suppress(CorpusError):
            known = [document.source for document in read_documents(settings.marag_data_dir, corpus)]
    found = find_files(paths, without=settings.marag_data_dir, known=known)
    if not found.files and not prune:
        passed = "".join(f" ({one.source!r}: {one.reason})" for one in found.passed_over[:1])
        raise InputError(f"No files to read in {', '.join(map(repr, map(str, paths)))}{passed}; give other paths.")
    return found


def chunking_of(settings: Settings) -> Chunking:
    """How the settings split documents. Raises `SettingsError`."""
    if settings.chunker == "characters" and settings.chunk_overlap >= settings.chunk_characters:
        raise SettingsError(
            f"CHUNK_OVERLAP is {settings.chunk_overlap!r}, which is not less than CHUNK_CHARACTERS "
            f"({settings.chunk_characters!r}); lower it."
        )
    return Chunking(chunker=settings.chunker, characters=settings.chunk_characters, overlap=settings.chunk_overlap)


async def take_in(
    settings: Settings, files: Sequence[FoundFile], edit: AbstractAsyncContextManager[CorpusEditor]
) -> tuple[FileOutcome, ...]:
    """Ingest only these files into a corpus, in a new edit. Raises the errors of the edit."""
    async with edit as editor:
        return await _Ingestion(settings, editor, chunking_of(settings)).run(
            SourceFiles(files=tuple(files)), prune=False
        )


class _Ingestion:
    """One run over one corpus. Outcomes of files that need no reading come first, then those of the files in order."""

    def __init__(self, settings: Settings, editor: CorpusEditor, chunking: Chunking) -> None:
        require("ingest", "Reading documents")
        self._settings = settings
        self._editor = editor
        job = Job(
            seconds=settings.ingest_seconds,
            memory_mb=settings.ingest_memory_mb,
            file_mb=settings.ingest_file_mb,
            chunking=chunking,
        )
        self._reader = IsolatedReader(job)
        self._outcomes: list[FileOutcome] = []
        self._kept = {document.source for document in editor.documents()}
        self._refusals: dict[str, Refused] = {}

    async def run(self, found: SourceFiles, *, prune: bool) -> tuple[FileOutcome, ...]:
        """The whole run."""
        self._outcomes += found.passed_over
        hashes: dict[str, str] = {}
        for file in found.files:
            try:
                hashes[file.source] = await asyncio.to_thread(file_hash, file.path)
            except OSError as error:
                self._skip(file, Refused("unreadable", f"it cannot be opened ({error.strerror})"))
        steps, gone = await asyncio.to_thread(plan_for, found, hashes, self._editor.documents())
        if prune:
            await self._editor.remove([document.id for document in gone])
        for document in gone:
            reason = None if prune else "its file no longer exists; --prune removes it"
            self._report(document.source, "pruned" if prune else "gone", reason, document.passages)
        await self._take(steps)
        return tuple(self._outcomes)

    async def _take(self, steps: Sequence[PlannedFile]) -> None:
        """Add the files in order; the next ones are read while one is encoded."""
        read: asyncio.Queue[ReadFile | Exception | None] = asyncio.Queue(_READ_AHEAD)

        async def read_all() -> None:
            for step in steps:
                try:
                    await read.put(await self._read(step))
                except Exception as error:  # noqa: BLE001 # it is raised where the file is added
                    await read.put(error)

        reading = asyncio.create_task(read_all())
        try:
            for step in steps:
                await self._add(step, await read.get())
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await self._reader.close()

    async def _read(self, step: PlannedFile) -> ReadFile | None:
        """Passages from JSON lines in a thread, everything else in a child process. Raises `Refused`.

        `None` if the file needs no reading.
        """
        if step.same_as is not None or step.status == "unchanged":
            return None
        path = step.file.path
        if is_rows(path):
            most = _UNPACKED * int(self._settings.ingest_file_mb * _MEGABYTE)
            return await asyncio.to_thread(read_rows, path, most)
        return await self._reader.read(path, step.doc_id)

    async def _add(self, step: PlannedFile, reading: ReadFile | Exception | None) -> None:
        try:
            if step.same_as in self._refusals:
                raise self._refusals[step.same_as]
            if isinstance(reading, Exception):
                raise reading
            if reading is not None:
                await self._put(step, reading)
            elif step.same_as is None:
                self._report(step.file.source, step.status, None, step.passages)
            else:  # what the copy of another file had before is removed
                await self._editor.remove([step.doc_id] if step.doc_id else [])
                reason = f"it has the same content as {step.same_as!r}"
                self._report(step.file.source, step.status, reason, step.passages)
        except Refused as refused:
            self._refusals[step.file.source] = refused
            self._skip(step.file, refused)

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
        reasons = "; ".join(filter(None, (*reading.notes, screened)))
        self._report(step.file.source, step.status, reasons or None, len(reading.passages))

    def _report(self, source: str, status: Status, reason: str | None, passages: int) -> None:
        self._outcomes.append(FileOutcome(source=source, status=status, reason=reason, passages=passages))

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

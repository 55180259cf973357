"""Embedded indexes for questions: each reader has its own copy, so that any number can read while one edits.

The engines write to their files even during searches (flags, trackers), and admit only one process. A copy is
taken while nobody edits and shows that state until `renew`; it is removed at the end, and after a kill by the next
reader. The catalogue is shared: SQLite supports many readers beside one writer.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from ...errors import CorpusError
from ...settings import Settings
from ..passage import Found, Passage
from ..stores import DenseStore, LexicalStore
from ..stores.seal import is_sealed
from ..vectors import FloatMatrix, FloatVector
from .catalogue import FILE_NAME, Catalogue
from .editing import finish_interrupted
from .folder import CorpusFolder
from .locations import backends, opened, places, require_catalogue, require_room
from .manifest import BEING_EDITED, Manifest, read_manifest, require_format, write_manifest

_INDEXES = ("dense", "lexical")
_NOT_COPIED = ("seal.json", "wal", "*.lock")
"""A sealed index has flushed its log, and nobody locks a copy."""


@dataclass(kw_only=True)
class _View:
    """An open copy; closed once it is `outdated` and no search uses it."""

    dense: DenseStore
    lexical: LexicalStore
    stack: AsyncExitStack
    users: int = 0
    outdated: bool = False


@dataclass(kw_only=True)
class CorpusReader:
    """The indexes of a corpus as seen by this reader."""

    settings: Settings
    folder: CorpusFolder
    _view: _View | None = field(default=None, repr=False)

    @property
    def dense(self) -> DenseStore:
        """The dense index, which follows `renew`."""
        return _ReadDense(self)

    @property
    def lexical(self) -> LexicalStore:
        """The lexical index, which follows `renew`."""
        return _ReadLexical(self)

    async def renew(self) -> None:
        """Refresh the view of the corpus. Call it while this process holds the corpus's lock."""
        before, self._view = self._view, await self._opened(await asyncio.to_thread(read_manifest, self.folder.path))
        if before is not None:
            before.outdated = True
            await _close_unused(before)

    async def close(self) -> None:
        """Remove the copy."""
        view, self._view = self._view, None
        if view is not None:
            view.outdated = True
            await view.stack.aclose()

    @asynccontextmanager
    async def using(self) -> AsyncIterator[_View]:
        """The current copy, kept open meanwhile."""
        view = self._view
        if view is None:
            raise CorpusError("The corpus is closed; search it before its `async with` block ends.")
        view.users += 1
        try:
            yield view
        finally:
            view.users -= 1
            if view.outdated:
                await _close_unused(view)

    async def _opened(self, manifest: Manifest) -> _View:
        async with AsyncExitStack() as stack:
            path = stack.enter_context(_place_of_its_own(self.folder))
            await asyncio.to_thread(_copy, self.settings, self.folder.path, path, manifest)
            dense_backend, lexical_backend = backends(manifest)
            at_dense, at_lexical = (replace(place, read_only=True) for place in places(self.settings, path, manifest))
            dense = await stack.enter_async_context(dense_backend.open(at_dense, manifest.dimension))
            lexical = await stack.enter_async_context(lexical_backend.open(at_lexical))
            return _View(dense=dense, lexical=lexical, stack=stack.pop_all())
        raise AssertionError  # the stack propagates every error


@asynccontextmanager
async def reading(settings: Settings, folder: CorpusFolder) -> AsyncIterator[tuple[Manifest, CorpusReader]]:
    """A reader of an embedded corpus, closed at the end.

    An interrupted edit is completed first, and a lost or damaged index is rebuilt. Raises
    `CorpusError` if the corpus is being edited elsewhere.
    """
    reader = CorpusReader(settings=settings, folder=folder)
    try:
        async with folder.read():
            manifest = await asyncio.to_thread(_whole, folder)
            if manifest is not None:
                await reader.renew()
        if manifest is None:
            async with folder.locked():
                manifest = await _mended(settings, folder)
                await reader.renew()
        yield manifest, reader
    finally:
        await reader.close()


def _whole(folder: CorpusFolder) -> Manifest | None:
    """The manifest of a corpus that can be copied as it is; `None` if something must be repaired."""
    if folder.replaced.exists() and not folder.path.exists():
        return None
    manifest = require_format(read_manifest(folder.path))
    require_catalogue(folder.path, manifest)
    if manifest.checksum == BEING_EDITED or not all(is_sealed(folder.path / index) for index in _INDEXES):
        return None
    with closing(Catalogue(folder.path / FILE_NAME, manifest.dimension)) as catalogue:
        whole = catalogue.counts()[1] == manifest.passages and not catalogue.interrupted()
    return manifest if whole else None


async def _mended(settings: Settings, folder: CorpusFolder) -> Manifest:
    manifest = await asyncio.to_thread(folder.existing)
    assert manifest is not None
    require_format(manifest)
    async with opened(settings, folder.path, manifest) as indexed:
        whole = await finish_interrupted(manifest, indexed)
        if whole != manifest:
            await asyncio.to_thread(write_manifest, folder.path, whole)
    return whole


def _copy(settings: Settings, source: Path, target: Path, manifest: Manifest) -> None:
    require_room(settings, manifest, bytes_=sum(_bytes(source / index) for index in _INDEXES))
    try:
        for index in _INDEXES:
            shutil.copytree(source / index, target / index, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    except (OSError, shutil.Error) as error:
        raise CorpusError(f"The corpus {manifest.name!r} cannot be copied for reading: {error}.") from error


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.parent.name != "wal")


@contextmanager
def _place_of_its_own(folder: CorpusFolder) -> Iterator[Path]:
    """An empty folder for a copy, removed at the end; folders of killed readers are removed first."""
    folder.copies.mkdir(parents=True, exist_ok=True)
    _remove_left(folder.copies)
    lock = _new_lock(folder.copies)
    path = Path(lock.lock_file).with_suffix("")
    try:
        path.mkdir()
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


def _new_lock(copies: Path) -> FileLock:
    """A held lock with a unique name. Before its file is locked, another reader may take it for a leftover."""
    while True:
        lock = FileLock(copies / f"{uuid4().hex}.lock", thread_local=False)
        lock.acquire()  # waits while that reader checks it
        if Path(lock.lock_file).exists():
            return lock
        lock.release()


def _remove_left(copies: Path) -> None:
    for file in copies.glob("*.lock"):
        lock = FileLock(file, timeout=0, thread_local=False)
        try:
            lock.acquire()
        except (Timeout, OSError):
            continue  # its reader is alive
        shutil.rmtree(file.with_suffix(""), ignore_errors=True)
        with suppress(OSError):  # while held, so that nobody else can acquire it afterwards
            file.unlink(missing_ok=True)
        lock.release()


async def _close_unused(view: _View) -> None:
    if not view.users:
        await view.stack.aclose()


_READ_ONLY = "This copy of the corpus is read-only; change the corpus with `edit_corpus` or `edit_live`."


@dataclass(frozen=True)
class _ReadDense:
    """The `DenseStore` of a reader."""

    reader: CorpusReader

    async def update(self, passages: Sequence[Passage], vectors: FloatMatrix, *, removed: Sequence[str] = ()) -> None:
        """Not available to a reader."""
        raise CorpusError(_READ_ONLY)

    async def search(self, vector: FloatVector, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        """See `DenseStore`."""
        async with self.reader.using() as view:
            return await view.dense.search(vector, k, among=among)

    async def scan(self) -> AsyncIterator[Passage]:
        """See `DenseStore`."""
        async with self.reader.using() as view:
            async for passage in view.dense.scan():
                yield passage


@dataclass(frozen=True)
class _ReadLexical:
    """The `LexicalStore` of a reader."""

    reader: CorpusReader

    async def update(self, passages: Sequence[Passage], *, removed: Sequence[str] = ()) -> None:
        """Not available to a reader."""
        raise CorpusError(_READ_ONLY)

    async def search(self, text: str, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        """See `LexicalStore`."""
        async with self.reader.using() as view:
            return await view.lexical.search(text, k, among=among)

    async def scan(self) -> AsyncIterator[Passage]:
        """See `LexicalStore`."""
        async with self.reader.using() as view:
            async for passage in view.lexical.scan():
                yield passage

"""The place of a corpus, the locks on it, and its atomic replacement by a finished one."""

import asyncio
import re
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import ReadWriteLock, Timeout

from ...errors import CorpusError, InputError
from .manifest import Manifest, read_manifest, write_manifest

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PATIENCE_SECONDS = 3.0
"""How long an editor waits for readers that copy the indexes, and a reader for an edit: one document takes a second."""
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True)
class CorpusFolder:
    """`<data_dir>/corpora/<name>` and its hidden neighbours, whose names are invalid for a corpus."""

    home: Path
    name: str

    @property
    def path(self) -> Path:
        """The corpus itself: either complete or absent."""
        return self.home / self.name

    @property
    def building(self) -> Path:
        """The folder for building; the next build removes what an interrupted one left."""
        return self.home / f".{self.name}.building"

    @property
    def replaced(self) -> Path:
        """The earlier corpus, while a new one takes its place."""
        return self.home / f".{self.name}.replaced"

    @property
    def copies(self) -> Path:
        """The folder for readers' copies of embedded indexes."""
        return self.home / f".{self.name}.copies"

    def locked(self) -> AbstractAsyncContextManager[None]:
        """Exclusive access, across processes, to build or edit this corpus, while nobody copies it.

        Raises `CorpusError` if another process has it. Locks are released when a process ends.
        """
        return self._held(write=True)

    def read(self) -> AbstractAsyncContextManager[None]:
        """Keep the corpus unchanged, shared with other readers. Raises `CorpusError` if an edit takes too long."""
        return self._held(write=False)

    @asynccontextmanager
    async def _held(self, *, write: bool) -> AsyncIterator[None]:
        until = time.monotonic() + _PATIENCE_SECONDS
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            # a separate instance for each: a shared one would let this process in twice
            lock = ReadWriteLock(self.home / f".{self.name}.lock.db", is_singleton=False)
            while True:
                try:
                    (lock.acquire_write if write else lock.acquire_read)(blocking=False)
                except Timeout:
                    if time.monotonic() > until:
                        raise
                    await asyncio.sleep(_PAUSE_SECONDS)
                else:
                    break
        except Timeout:
            busy = f"The corpus {self.name!r} is being built or changed elsewhere; try again when that is done."
            raise CorpusError(busy) from None
        except OSError as error:
            raise CorpusError(f"{str(self.home)!r} cannot be written to; set MARAG_DATA_DIR. ({error})") from error
        try:
            yield
        finally:
            lock.release()
            lock.close()

    def existing(self) -> Manifest | None:
        """The manifest of the existing corpus, or `None`. Raises `CorpusError` if it was not created by this package.

        Call it under the lock: it also restores a corpus whose replacement was interrupted.
        """
        if self.replaced.exists() and not self._occupied():
            self.replaced.rename(self.path)
        return read_manifest(self.path) if self._occupied() else None

    def published(self) -> Manifest | None:
        """The manifest at this moment; `None` if there is none, or it cannot be read."""
        return _readable(self.path)

    def _occupied(self) -> bool:
        return self.path.exists() or self.path.is_symlink()

    def unfinished(self) -> Manifest | None:
        """The manifest of an interrupted rebuild, `None` if there is none that can be continued."""
        return _readable(self.building)

    def start(self, manifest: Manifest) -> None:
        """Remove the remains of interrupted builds, and create the folder to build in."""
        self.discard()
        self.building.mkdir(parents=True)
        write_manifest(self.building, manifest)

    def install(self) -> None:
        """Move the build into its place, and remove what it replaces."""
        if self.path.exists():
            self.path.rename(self.replaced)
        self.building.rename(self.path)
        self.discard()

    def drop(self) -> None:
        """Remove the corpus and everything that belongs to it, except the lock."""
        self.path.rename(self.replaced)
        shutil.rmtree(self.replaced)
        self.discard()
        with suppress(OSError):  # a reader may be left
            self.copies.rmdir()

    def discard(self) -> None:
        """Remove the build folder, and the earlier corpus once another one has replaced it."""
        if self.building.exists():
            shutil.rmtree(self.building)
        if self.replaced.exists() and self.path.exists():
            shutil.rmtree(self.replaced)


def corpus_folder(data_dir: Path, name: str) -> CorpusFolder:
    """The place of the corpus `name`. Raises `InputError` for an invalid name."""
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"{name!r} is not a valid corpus name; use 1 to 64 of a-z, 0-9, '.', '_' and '-', "
            "starting with a letter or digit."
        )
    return CorpusFolder(home=data_dir / "corpora", name=name)


def _readable(path: Path) -> Manifest | None:
    try:
        return read_manifest(path)
    except CorpusError:
        return None

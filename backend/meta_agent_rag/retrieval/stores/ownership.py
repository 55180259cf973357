"""A marker file that identifies folders of this package's embedded stores, so that no others are modified."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ...errors import CorpusError
from .protocols import StorePlace

CREATED_BY = "meta-agent-rag"
FILE_NAME = "store.json"


def claim(folder: Path, store: str) -> None:
    """Mark `folder` as this package's, before the engine writes there.

    Raises `CorpusError` if it contains foreign files, or has lost those of the engine.
    """
    mark = _mark(folder, store)
    if mark is None:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder, store, ready=False)
    elif mark.get("ready") and not any(file.name != FILE_NAME for file in folder.iterdir()):
        raise CorpusError(f"The files of the index {str(folder)!r} are missing; rebuild it.")


def settle(folder: Path, store: str) -> None:
    """Record that the engine has created its files, so that their absence counts as a loss."""
    mark = _mark(folder, store)
    if mark is not None and not mark.get("ready"):
        _write(folder, store, ready=True)


def dropper(store: str) -> Callable[[StorePlace], Awaitable[None]]:
    """The `drop` function of an embedded backend."""

    async def drop(place: StorePlace) -> None:
        await asyncio.to_thread(_drop, place.folder, store)

    return drop


def _drop(folder: Path, store: str) -> None:
    if _mark(folder, store) is not None:
        for entry in folder.iterdir():
            if entry.name != FILE_NAME:  # last, so that the remains of a kill are still identified
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        (folder / FILE_NAME).unlink()
    if folder.is_dir():
        folder.rmdir()


def _mark(folder: Path, store: str) -> dict[str, Any] | None:
    """The contents of the marker; empty if the folder is missing or empty."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        mark = json.loads((folder / FILE_NAME).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{str(folder)!r} is not a {store!r} index of this package; move it away to have it rebuilt."
        ) from error
    if not isinstance(mark, dict) or (mark.get("created_by"), mark.get("store")) != (CREATED_BY, store):
        raise CorpusError(f"{str(folder)!r} belongs to another program or store; choose another folder.")
    return mark


def _write(folder: Path, store: str, *, ready: bool) -> None:
    new = folder / f"{FILE_NAME}.new"
    new.write_text(json.dumps({"created_by": CREATED_BY, "store": store, "ready": ready}), encoding="utf-8")
    new.replace(folder / FILE_NAME)

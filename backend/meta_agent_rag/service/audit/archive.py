"""Files of old audit records: JSON lines under gzip, written atomically.

A file is `audit-MONTH-ID.jsonl.gz`. While it is written its name ends in `.part`; until its records have left
the database, in `.rows` (records of the log) or `.table` (a month detached from the log). After a kill, the
names therefore show what is left to do.
"""

import asyncio
import gzip
import json
import os
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...errors import DataFileError, StorageError
from ..request_record import new_id
from .rows import Row

_FINISHED = re.compile(r"audit-(\d{4})-(\d{2})-[0-9a-f]{32}\.jsonl\.gz")
ROWS, TABLE = ".rows", ".table"
_PART = ".part"


def archives(folder: Path) -> list[Path]:
    """The finished files, by month, then by age."""
    return sorted(path for path in folder.glob("audit-*") if _FINISHED.fullmatch(path.name))


def unfinished(folder: Path, state: str) -> list[Path]:
    """Files whose records may still be in the database; incomplete files are removed."""
    for part in folder.glob(f"audit-*{_PART}"):
        part.unlink(missing_ok=True)
    return sorted(path for path in folder.glob(f"audit-*{state}") if _FINISHED.fullmatch(path.stem))


def finish(path: Path) -> Path:
    """Give a file its final name once its records have left the database."""
    return _renamed(path, path.with_suffix(""))


async def write_archive(folder: Path, month: str, state: str, pages: AsyncIterator[Sequence[Row]]) -> Path | None:
    """Write records into a new file that is on disk when this returns; `None` if there are none.

    Raises `StorageError`, in which case nothing was written.
    """
    final = folder / f"audit-{month}-{new_id()}.jsonl.gz"
    part, count = final.with_name(final.name + _PART), 0
    try:
        with _compressed(part) as file:
            async for page in pages:
                await asyncio.to_thread(_write, file, page)
                count += len(page)
        return _renamed(part, final.with_name(final.name + state)) if count else None
    except OSError as error:
        raise StorageError(f"{str(final)!r} cannot be written ({error}); free disk space, then run it again.") from None
    finally:
        part.unlink(missing_ok=True)


def read_archive(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file, the oldest first. Raises `DataFileError` if it is not an archive, or is damaged."""
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                row = json.loads(line)
                if not isinstance(row, dict) or "query_id" not in row:
                    raise ValueError
                yield row
    except FileNotFoundError:
        raise DataFileError(f"There is no file {str(path)!r}; the archives are in `audit/archive`.") from None
    except (OSError, EOFError, ValueError, zlib.error):
        raise DataFileError(f"{str(path)!r} is not an archive of records, or is damaged; use another copy.") from None


def rewrite(path: Path, keep: Callable[[Row], bool]) -> int:
    """Remove records from a file and return their number; a file without records is deleted."""
    kept = dropped = 0
    part = path.with_name(path.name + _PART)

    def rest() -> Iterator[dict[str, Any]]:
        nonlocal kept, dropped
        for row in read_archive(path):
            if keep(row):
                kept += 1
                yield row
            else:
                dropped += 1

    try:
        with _compressed(part) as file:
            _write(file, rest())
        if dropped and kept:
            _renamed(part, path)
        elif dropped:
            path.unlink()
    finally:
        part.unlink(missing_ok=True)
    return dropped


@contextmanager
def _compressed(path: Path) -> Iterator[gzip.GzipFile]:
    """A new compressed file, which is on disk at the end."""
    with path.open("wb") as raw:
        with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
            yield file
        raw.flush()
        os.fsync(raw.fileno())


def _write(file: gzip.GzipFile, rows: Iterable[Row]) -> None:
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _renamed(path: Path, target: Path) -> Path:
    """Rename durably, so that the new name survives a power cut."""
    path.replace(target)
    with suppress(OSError):  # some systems cannot sync folders
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return target

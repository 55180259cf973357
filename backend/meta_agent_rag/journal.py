"""Append-only JSONL files that outlive a kill: one record a line, flushed; a torn tail is set aside."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import StorageError


@dataclass(frozen=True, kw_only=True)
class Records:
    """What a journal holds: its whole records, and how many damaged lines were passed over."""

    rows: tuple[dict[str, Any], ...]
    damaged: int


class Journal:
    """Appends records to a file; safe to open on a file whose last line was torn by a kill.

    `durable` syncs each record to the disk itself (about a millisecond), so that it survives a
    power cut too; without it a record survives the end of the process.
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self.path = path
        self._durable = durable
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
            if _tail_is_torn(path):
                self._file.write(b"\n")
        except OSError as error:
            raise self._unwritable(error) from None

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one record and hand it to the operating system; raises `StorageError`."""
        try:
            self._file.write(_line(row))
            self._file.flush()
            if self._durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from None

    def close(self) -> None:
        """Close the file; a closed journal takes no more records."""
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> StorageError:
        return StorageError(
            f"{str(self.path)!r} cannot be written ({error}); free some space, or choose another folder."
        )


def read_journal(path: Path) -> Records:
    """All whole records of a journal, in order; a missing file has none."""
    found = [row for _, row in records(path)]
    rows = tuple(row for row in found if row is not None)
    return Records(rows=rows, damaged=len(found) - len(rows))


def records(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The records of a journal one by one, each with its place in bytes; a damaged line is `None`.

    Lines are split at the newline byte alone: `str.splitlines` also splits inside records.
    """
    if not path.exists():
        return
    at = 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield at, _parsed(line)
            at += len(line)


def record_at(path: Path, at: int) -> dict[str, Any]:
    """The record at a place that `records` told; raises `StorageError` where it is there no longer."""
    try:
        with path.open("rb") as file:
            file.seek(at)
            row = _parsed(file.readline())
    except OSError:
        row = None
    if row is None:
        raise StorageError(f"{str(path)!r} changed while it was being read; stop other writers and try again.")
    return row


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line, object_pairs_hook=_record)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _record(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    # names are the same in every record: kept once, not as often as there are records
    return {sys.intern(name): value for name, value in fields}


def _line(row: Mapping[str, Any]) -> bytes:
    # half a surrogate pair, which a reply cut short can hold, has no UTF-8: it is kept as its JSON escape
    return json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace") + b"\n"


def _tail_is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"

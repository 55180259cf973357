"""Append-only JSONL files that survive a kill: one record per line, flushed; a torn tail is set aside."""

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
    """The contents of a journal: its complete records, and the number of damaged lines skipped."""

    rows: tuple[dict[str, Any], ...]
    damaged: int


class Journal:
    """Appends records to a file; it is safe to open a file whose last line was torn by a kill.

    `durable` syncs each record to the disk (about a millisecond), so that it also survives a
    power cut; without it, a record survives the end of the process.
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
        """Close the file; a closed journal accepts no more records."""
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> StorageError:
        return StorageError(
            f"{str(self.path)!r} cannot be written ({error}); free disk space, or choose another folder."
        )


def read_journal(path: Path) -> Records:
    """All complete records of a journal, in order; empty for a missing file."""
    found = [row for _, row in records(path)]
    rows = tuple(row for row in found if row is not None)
    return Records(rows=rows, damaged=len(found) - len(rows))


def records(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The records of a journal one by one, each with its byte offset; a damaged line is `None`.

    Lines are split only at the newline byte: `str.splitlines` also splits inside records.
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
    """The record at an offset given by `records`; raises `StorageError` if it is no longer there."""
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
    # names repeat in every record, so they are interned
    return {sys.intern(name): value for name, value in fields}


def _line(row: Mapping[str, Any]) -> bytes:
    # a lone surrogate, possible in a truncated reply, has no UTF-8 encoding: it is stored as its JSON escape
    return json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace") + b"\n"


def _tail_is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"

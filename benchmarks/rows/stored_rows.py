"""Rows of a run of any length in little memory: their long fields stay on disk."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from meta_agent_rag.journal import record_at, records

_AT_HAND = 256
_STORED = object()


class StoredRow(Mapping[str, Any]):
    """A row of `samples.jsonl`; its lists and objects are read on demand."""

    __slots__ = ("_at", "_file", "_values")

    def __init__(self, file: "_SamplesFile", at: int, row: Mapping[str, Any]) -> None:
        self._file = file
        self._at = at
        self._values = {name: _STORED if isinstance(value, (list, dict)) else value for name, value in row.items()}

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        return self._file.row(self._at)[name] if value is _STORED else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class _SamplesFile:
    """Caches the rows read last: analyses go over all rounds of one row, then of the next."""

    def __init__(self, path: Path) -> None:
        self.row = lru_cache(maxsize=_AT_HAND)(lambda at: record_at(path, at))


def stored_rows(path: Path) -> dict[tuple[str, str], StoredRow]:
    """The rows of a `samples.jsonl` by (question id, method); later rows win, torn rows are skipped."""
    file = _SamplesFile(path)
    found = ((at, row) for at, row in records(path) if row is not None and "error" in row)
    return {
        (row["id"], row["method"]): StoredRow(file, at, row)
        for at, row in found
        if isinstance(row.get("id"), str) and isinstance(row.get("method"), str)
    }

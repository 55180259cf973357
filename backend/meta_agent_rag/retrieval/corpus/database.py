"""One SQLite file: statements, transactions, and its faults as `CorpusError`."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import CorpusError

_VARIABLES = 500
"""The most values in one statement."""


class Database:
    """A SQLite file with a write-ahead log. Many processes may read, one may write."""

    def __init__(self, file: Path) -> None:
        self._file = file
        with self._translated():
            self._connection = sqlite3.connect(file, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")

    def close(self) -> None:
        """Close the file; its write-ahead log is merged into it."""
        self._connection.close()

    def _among(self, statement: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of a statement with `IN ({})`, for any number of values."""
        parts = (values[start : start + _VARIABLES] for start in range(0, len(values), _VARIABLES))
        return [row for part in parts for row in self._rows(statement.format(_marks(part)), tuple(part))]

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._translated():
            return self._connection.execute(statement, values).fetchall()

    def _execute(self, statement: str, values: Sequence[object] = ()) -> None:
        with self._translated():
            self._connection.execute(statement, values)

    def _many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        with self._translated():
            self._connection.executemany(statement, rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")  # this is what fails on a full disk
        except BaseException:
            self._connection.rollback()
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise CorpusError(
                f"The catalogue {str(self._file)!r} cannot be used ({error}); free disk space or fix its permissions, "
                "or drop the corpus and ingest it again."
            ) from error


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))

"""SQLite files that several processes may share."""

import sqlite3
import time
from typing import Any

_PAUSE_SECONDS = 0.01


def use_write_ahead_log(connection: Any, *, seconds: float) -> None:
    """Switch an open database to a write-ahead log, so that readers and a writer do not wait for each other.

    Raises `sqlite3.OperationalError` if other processes hold the file longer than `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # two processes that create the file: SQLite reports a lock here without waiting for it
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)

"""Replies by request, in SQLite: a repeated or resumed run pays nothing twice."""

import hashlib
import json
import sqlite3
from dataclasses import asdict
from pathlib import Path

from ..errors import SettingsError
from .exchange import Reply, Request, Usage


def request_key(endpoint: str, request: Request) -> str:
    """SHA-256 over endpoint, model, parameters and messages: equal keys are equal calls."""
    fields = {**vars(request), "messages": [[message.role, message.content] for message in request.messages]}
    whole = json.dumps({"endpoint": endpoint, **fields}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


class ResponseCache:
    """A table of replies on disk; several processes may share it.

    Reads and writes take well under a millisecond, so they are done in place. A reply is kept once
    the write returns, even if the process is killed then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
        except (OSError, sqlite3.DatabaseError) as error:
            raise _unusable(path, error) from None

    def get(self, key: str) -> Reply | None:
        """The reply that was kept for a request, or `None`."""
        row = self._execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        kept = json.loads(row[0])
        usage = Usage(**kept["usage"]) if kept["usage"] is not None else None
        return Reply(text=kept["text"], usage=usage, finish_reason=kept["finish_reason"])

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply; the newest wins."""
        kept = json.dumps(asdict(reply), ensure_ascii=False)
        self._execute("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", (key, kept))

    def close(self) -> None:
        """Close the table."""
        self._connection.close()

    def _execute(self, statement: str, values: tuple[str, ...]) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.DatabaseError as error:
            raise _unusable(self._path, error) from None


def _unusable(path: Path, error: Exception) -> SettingsError:
    return SettingsError(
        f"The response cache {str(path)!r} cannot be used ({error}); move the file away, or set RESPONSE_CACHE=false."
    )

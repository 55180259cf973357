"""Replies by request, in SQLite: a repeated or resumed run pays for nothing twice."""

import hashlib
import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..errors import SettingsError, StorageError
from ..sqlite import use_write_ahead_log
from .messages import Reply, Request, Usage

_OPTIONAL = ("draw", "logprobs", "stop")


@dataclass(frozen=True, kw_only=True)
class CachedReply:
    """A stored reply and the time of the call, which determines its price."""

    reply: Reply
    at: datetime


def request_key(endpoint: str, request: Request) -> str:
    """SHA-256 over endpoint, model, parameters and messages: equal keys are equal calls."""
    messages = [[message.role, message.content] for message in request.messages]
    fields = {**vars(request), "messages": messages}
    fields = {name: value for name, value in fields.items() if value or name not in _OPTIONAL}
    whole = json.dumps({"endpoint": endpoint, **fields}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


class ResponseCache:
    """A table of replies on disk; several processes may share it.

    Reads and writes take well under a millisecond, so they are synchronous. A reply is stored once
    the write returns, even if the process is killed then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
            use_write_ahead_log(self._connection, seconds=10.0)
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
        except (OSError, sqlite3.DatabaseError) as error:
            raise _unusable(path, error) from None

    def get(self, key: str) -> CachedReply | None:
        """The stored reply to a request, or `None`."""
        row = self._execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            kept = json.loads(row[0])
            return CachedReply(reply=reply_from(kept), at=datetime.fromisoformat(kept["at"]))
        except (AttributeError, KeyError, TypeError, ValueError):
            return None  # damaged, or of another version: the call is repeated and the entry replaced

    def put(self, key: str, reply: Reply, at: datetime) -> None:
        """Store a reply with the time of its call; the newest wins."""
        usage = None if reply.usage is None else vars(reply.usage)
        kept = json.dumps({**vars(reply), "usage": usage, "at": at.isoformat()}, ensure_ascii=False)
        self._execute("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", (key, kept))

    def drop(self, *keys: str) -> None:
        """Remove the replies to requests; a missing one is not an error."""
        for key in keys:
            self._execute("DELETE FROM replies WHERE key = ?", (key,))

    def close(self) -> None:
        """Close the table."""
        self._connection.close()

    def _execute(self, statement: str, values: tuple[str, ...]) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.DatabaseError as error:
            raise _unusable(self._path, error) from None


def reply_from(kept: dict[str, Any]) -> Reply:
    """A reply restored from the JSON form of its fields."""
    usage, tokens = kept.get("usage"), kept.get("tokens")
    if usage is not None and not all(isinstance(count, int) and count >= 0 for count in usage.values()):
        raise ValueError("a usage figure is not a number of tokens")
    return Reply(
        text=kept["text"],
        usage=None if usage is None else Usage(**usage),
        finish_reason=kept["finish_reason"],
        tokens=None if tokens is None else tuple((text, logprob) for text, logprob in tokens),
        model=kept.get("model"),
        withheld=kept.get("withheld"),
    )


def _unusable(path: Path, error: Exception) -> SettingsError | StorageError:
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the code without its extension
    if kind in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY}:
        return StorageError(
            f"The response cache {str(path)!r} cannot be written ({error}); free disk space, or set "
            "RESPONSE_CACHE=false."
        )
    return SettingsError(
        f"The response cache {str(path)!r} cannot be used ({error}); set MARAG_DATA_DIR to a writable "
        "folder, move the file away if it is damaged, or set RESPONSE_CACHE=false."
    )

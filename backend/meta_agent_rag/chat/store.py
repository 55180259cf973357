"""Stores conversations and their transcripts by name, in an SQLite file that several processes may share."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ..errors import DataFileError, InputError, StorageError
from ..grounding.citations import Citation
from ..text.normalise import encodable
from ..wording import first_fault
from .coach.levels import PLAIN, Socratic
from .history import History

Result = TypeVar("Result")
_FILE = "sessions.sqlite"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,71}")
"""As long as `default-` and the longest name of a corpus."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS sessions (name TEXT PRIMARY KEY, saved TEXT NOT NULL, stored TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS spoken (place INTEGER PRIMARY KEY, said TEXT NOT NULL, "
    "name TEXT NOT NULL REFERENCES sessions ON UPDATE CASCADE ON DELETE CASCADE)",
)
_SAVE = (
    "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET saved = excluded.saved, stored = excluded.stored"
)
_BUSY_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A stored conversation; `sources` are the citations of the last answer."""

    corpus: str
    history: History
    sources: tuple[Citation, ...] = ()
    socratic: Socratic = PLAIN

    def as_json(self) -> str:
        """The JSON that `from_json` reads; a lone surrogate, which SQLite cannot store, becomes `?`."""
        return encodable(json.dumps(asdict(self), ensure_ascii=False))

    @classmethod
    def from_json(cls, text: object) -> "Stored":
        """Read a stored conversation; unknown fields are ignored. Raises `DataFileError`."""
        try:
            return _STORED.validate_json(text if isinstance(text, str) else "", strict=True)
        except (ValidationError, InputError) as error:
            fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
            raise DataFileError(f"A stored conversation is damaged ({fault}); start a new session.") from None


@dataclass(frozen=True, kw_only=True)
class Said:
    """A message and its answer as shown, with the cited places."""

    question: str
    answer: str
    sources: tuple[str, ...] = ()


_STORED, _SAID = TypeAdapter(Stored), TypeAdapter(Said)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A conversation in a listing: when it was last saved (UTC), its corpus and its number of questions."""

    name: str
    saved: datetime
    corpus: str
    turns: int


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The conversations of a data folder; open them with `open_sessions`. Each method raises `StorageError`."""

    path: Path

    async def load(self, name: str) -> Stored | None:
        """The conversation with that name, or `None`. Raises `InputError` for an invalid name, and `DataFileError`."""
        _check(name)
        return await self._run(lambda connection: _load(connection, name))

    async def change(
        self,
        name: str,
        change: Callable[[Stored | None], Stored],
        said: Said | None = None,
    ) -> Stored:
        """Replace a conversation with the result of `change`, in one transaction, and return it.

        `said` is added to the transcript. Raises the same errors as `load`.
        """
        _check(name)

        def changed(connection: sqlite3.Connection) -> Stored:
            connection.execute("BEGIN IMMEDIATE")
            after = change(_load(connection, name))
            connection.execute(_SAVE, (name, datetime.now(UTC).isoformat(), after.as_json()))
            if said is not None:
                row = (encodable(json.dumps(asdict(said), ensure_ascii=False)), name)
                connection.execute("INSERT INTO spoken (said, name) VALUES (?, ?)", row)
            return after

        return await self._run(changed)

    async def names(self, *, before: datetime | None = None) -> list[str]:
        """The names of all conversations, sorted; with `before`, of those last saved earlier."""
        moment = "~" if before is None else before.astimezone(UTC).isoformat()
        return await self._select("SELECT name FROM sessions WHERE saved < ? ORDER BY name", moment)

    async def listed(self) -> list[Listed]:
        """All readable conversations, the latest first."""
        statement = "SELECT name, saved, stored FROM sessions ORDER BY saved DESC"
        found = []
        for name, saved, text in await self._run(lambda connection: connection.execute(statement).fetchall()):
            with suppress(DataFileError, ValueError):
                stored, moment = Stored.from_json(text), datetime.fromisoformat(saved)
                found.append(Listed(name=name, saved=moment, corpus=stored.corpus, turns=stored.history.turns))
        return found

    async def drop(self, name: str) -> None:
        """Delete a conversation with its transcript."""
        await self._select("DELETE FROM sessions WHERE name = ?", name)

    async def rename(self, name: str, new: str) -> None:
        """Rename a conversation. Raises `InputError` for a name that is unknown, invalid or taken."""
        _check(new)

        def renamed(connection: sqlite3.Connection) -> None:
            try:
                changed = connection.execute("UPDATE sessions SET name = ? WHERE name = ?", (new, name)).rowcount
            except sqlite3.IntegrityError:
                words = f"A session {new!r} already exists; choose another name, or delete it first."
                raise InputError(words) from None
            if not changed:
                raise unknown_session(name)

        await self._run(renamed)

    async def said(self, name: str) -> tuple[Said, ...]:
        """The transcript of a conversation, with everything that was said in it."""
        texts = await self._select("SELECT said FROM spoken WHERE name = ? ORDER BY place", name)
        return tuple(_SAID.validate_json(text) for text in texts)

    async def forget(self, name: str) -> None:
        """Delete the transcript of a conversation."""
        await self._select("DELETE FROM spoken WHERE name = ?", name)

    async def _select(self, statement: str, *values: str) -> list[str]:
        return await self._run(lambda connection: [row[0] for row in connection.execute(statement, values)])

    async def _run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def within() -> Result:
            with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS)) as connection, connection:
                connection.execute("PRAGMA foreign_keys = ON")
                return work(connection)

        try:
            return await asyncio.to_thread(within)
        except (sqlite3.Error, OSError) as error:
            raise StorageError(
                f"The sessions in {str(self.path)!r} cannot be read or written ({error}); free disk space, fix its "
                "permissions, or move it away to start with a new one."
            ) from None


@asynccontextmanager
async def open_sessions(data_dir: Path) -> AsyncIterator[Sessions]:
    """The conversations in a data folder, which is created if missing. Raises `StorageError`."""
    sessions = Sessions(path=data_dir / _FILE)
    try:
        await asyncio.to_thread(data_dir.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The sessions in {str(sessions.path)!r} cannot be stored ({error.strerror}); choose another "
            "MARAG_DATA_DIR."
        ) from None
    for table in _TABLES:
        await sessions._select(table)
    yield sessions


def unknown_session(name: str) -> InputError:
    """The error for an unknown session name."""
    return InputError(f"There is no session {name!r}; `marag sessions list` lists them.")


def _load(connection: sqlite3.Connection, name: str) -> Stored | None:
    row = connection.execute("SELECT stored FROM sessions WHERE name = ?", (name,)).fetchone()
    return None if row is None else Stored.from_json(row[0])


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"A session cannot be named {name!r}; use up to 72 letters, digits, dots, dashes and underscores."
        )

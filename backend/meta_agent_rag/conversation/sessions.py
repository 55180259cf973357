"""Keeps conversations by name, in LangGraph's SQLite checkpointer.

Each is a thread; its state is plain JSON values, read under strict msgpack, so that a file from elsewhere
can bring no objects along. Only the latest checkpoint of a thread is kept.
"""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ..errors import DataFileError, InputError, StorageError
from .history import History, as_json, from_json
from .socratic import mode as modes
from .socratic.mode import PLAIN, Socratic

if TYPE_CHECKING:
    import aiosqlite
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph.state import CompiledStateGraph

_FILE = "sessions.sqlite"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class _Kept(TypedDict, total=False):
    corpus: str
    history: dict[str, Any]
    sources: list[dict[str, Any]]
    socratic: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A conversation as it is kept: its corpus, its history, the citations of the last answer as plain values, and how
    it is held.
    """

    corpus: str
    history: History
    sources: tuple[dict[str, Any], ...] = ()
    socratic: Socratic = PLAIN


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The conversations of a data folder; open them with `open_sessions`."""

    graph: "CompiledStateGraph[_Kept, None]"
    saver: "AsyncSqliteSaver"

    async def load(self, name: str) -> Stored | None:
        """The conversation of that name, or `None`.

        Raises `InputError` for a name that cannot be one, `DataFileError` for a state that is damaged.
        """
        try:
            kept = (await self.graph.aget_state(_thread(name))).values
        except _UNREADABLE:
            raise _damaged(name) from None
        if not kept:
            return None
        corpus, sources = kept.get("corpus"), kept.get("sources", [])
        if not isinstance(corpus, str) or not isinstance(sources, list):
            raise _damaged(name)
        if not all(isinstance(source, dict) for source in sources):
            raise _damaged(name)
        return Stored(
            corpus=corpus,
            history=from_json(kept.get("history")),
            sources=tuple(sources),
            socratic=modes.from_json(kept.get("socratic")),
        )

    async def save(self, name: str, stored: Stored) -> None:
        """Keep a conversation, in place of what there was of that name; of two saved at once the later stays."""
        kept = _Kept(
            corpus=stored.corpus,
            history=as_json(stored.history),
            sources=list(stored.sources),
            socratic=modes.as_json(stored.socratic),
        )
        config = await self.graph.aupdate_state(_thread(name), kept, as_node=_KEEP)
        latest = config["configurable"]["checkpoint_id"]
        for table in ("writes", "checkpoints"):
            # the checkpointer keeps every state there ever was, and has no method to prune this backend;
            # its ids rise with time, so that no save takes out what another, at the same time, has kept
            query = f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_id < ?"
            await self.saver.conn.execute(query, (name, latest))
        await self.saver.conn.commit()

    async def names(self) -> list[str]:
        """The names of all conversations, sorted."""
        found = await self.saver.conn.execute_fetchall("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id")
        return [str(row[0]) for row in found]

    async def unused_since(self, moment: datetime) -> list[str]:
        """The names of conversations that nobody has gone on with since then."""
        return [name for name in await self.names() if (saved := await self._saved(name)) and saved < moment]

    async def _saved(self, name: str) -> datetime | None:
        try:
            created = (await self.graph.aget_state(_thread(name))).created_at
            return None if created is None else datetime.fromisoformat(created)
        except _UNREADABLE:
            return None

    async def drop(self, name: str) -> None:
        """Forget a conversation."""
        await self.saver.adelete_thread(name)


_KEEP = "keep"
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError)
"""What the checkpointer lets escape where the bytes of a checkpoint are none of its own."""


def _damaged(name: str) -> DataFileError:
    return DataFileError(f"The session {name!r} is damaged; start another one with --session.")


def _thread(name: str) -> "RunnableConfig":
    if not _NAME.fullmatch(name):
        raise InputError(
            f"A session cannot be named {name!r}; use up to 64 letters, digits, dots, dashes and underscores."
        )
    return {"configurable": {"thread_id": name}}


@asynccontextmanager
async def open_sessions(data_dir: Path) -> AsyncIterator[Sessions]:
    """The conversations under a data folder, which is made where it is missing.

    Raises `StorageError` where the file cannot be read or written.
    """
    import aiosqlite
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import START, StateGraph

    path = data_dir / _FILE
    try:
        await asyncio.to_thread(data_dir.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The sessions in {str(path)!r} cannot be kept ({error.strerror}); choose another MARAG_DATA_DIR."
        ) from None
    try:
        async with aiosqlite.connect(path) as connection:
            await connection.execute("PRAGMA busy_timeout = 5000")
            await _write_ahead(connection)
            saver = AsyncSqliteSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
            await saver.setup()
            graph = StateGraph(_Kept)
            graph.add_node(_KEEP, _unchanged)
            graph.add_edge(START, _KEEP)
            yield Sessions(graph=graph.compile(checkpointer=saver), saver=saver)
    except sqlite3.Error as error:
        raise StorageError(
            f"The sessions in {str(path)!r} cannot be read or written ({error}); free space or mend the file's "
            "permissions, or move it away to start anew."
        ) from None


async def _write_ahead(connection: "aiosqlite.Connection") -> None:
    """Switch a new file over, for which SQLite does not wait where another process does so at this moment."""
    for wait in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0):
        try:
            await connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            await asyncio.sleep(wait)
        else:
            return
    await connection.execute("PRAGMA journal_mode = WAL")


def _unchanged(state: _Kept) -> _Kept:
    return state

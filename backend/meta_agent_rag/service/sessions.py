"""Follow-up questions: what a client asked before in a session, so that "and when did she die?" is understood."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..conversation.history import History
from ..conversation.memories import Limits
from ..conversation.memory import bounded
from ..conversation.rewriter import rewritten
from ..conversation.sessions import Sessions, Stored, open_sessions
from ..errors import StorageError
from ..llm.client import ModelSession

if TYPE_CHECKING:
    import aiosqlite

_FOLDER, _LOCK = "service", "sessions.lock"
_LOCK_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class ClientSessions:
    """Sessions on disk; a client sees its own alone. What is older than MEMORY_FOLD_AT exchanges is forgotten.

    `lock` is a database of no content, locked by one worker at a time: an exchange is added in several transactions.
    """

    sessions: Sessions
    limits: Limits
    lock: "aiosqlite.Connection" = field(repr=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def before(self, client_id: str, session: str, corpus: str) -> History:
        """What was asked before about the same corpus; nothing, where that was about another one."""
        try:
            stored = await self.sessions.load(_name(client_id, session))
        except sqlite3.Error as error:
            raise _away(error) from None
        return stored.history if stored is not None and stored.corpus == corpus else History()

    async def remember(self, client_id: str, session: str, corpus: str, **exchange: str) -> None:
        """Add an exchange, with the fields of `History.with_exchange`, to what was kept meanwhile too.

        Raises `StorageError`.
        """
        async with self._writing, self._alone():
            history = await self.before(client_id, session, corpus)
            kept = bounded(history.with_exchange(**exchange), self.limits).history
            try:
                await self.sessions.save(_name(client_id, session), Stored(corpus=corpus, history=kept))
            except sqlite3.Error as error:
                raise _away(error) from None

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Be the only worker that writes."""
        try:
            try:
                await self.lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as error:
                raise _away(error) from None
            yield
        finally:
            await self.lock.rollback()  # also where one gave up waiting: the connection's thread may begin all the same


async def standalone(question: str, history: History, model: ModelSession) -> str:
    """The question as it can be searched for without what was asked before; without a call where there is nothing."""
    return (await rewritten(question, history, model)).query


@asynccontextmanager
async def open_client_sessions(data_dir: Path, limits: Limits) -> AsyncIterator[ClientSessions]:
    """The sessions below a data folder. Raises `StorageError` where they cannot be read."""
    import aiosqlite

    folder = data_dir / _FOLDER
    async with (
        open_sessions(folder) as sessions,
        aiosqlite.connect(folder / _LOCK, timeout=_LOCK_SECONDS, isolation_level=None) as lock,
    ):
        await lock.execute("PRAGMA journal_mode = MEMORY")
        yield ClientSessions(sessions=sessions, limits=limits, lock=lock)


async def forget_sessions(data_dir: Path, client_id: str) -> None:
    """Delete a client's sessions. Raises `StorageError`."""
    folder = data_dir / _FOLDER
    if not await asyncio.to_thread(folder.is_dir):
        return
    async with open_sessions(folder) as sessions:
        for name in await sessions.names():
            if name.startswith(_name(client_id, "")):
                await sessions.drop(name)


async def unused_sessions(data_dir: Path, since: datetime, *, drop: bool) -> int:
    """How many sessions nobody has gone on with since a moment; with `drop` they are deleted. Raises `StorageError`."""
    folder = data_dir / _FOLDER
    if not await asyncio.to_thread(folder.is_dir):
        return 0
    async with open_sessions(folder) as sessions:
        unused = await sessions.unused_since(since)
        for name in unused if drop else ():
            await sessions.drop(name)
        return len(unused)


def _name(client_id: str, session: str) -> str:
    return f"{client_id}.{session}"


def _away(error: sqlite3.Error) -> StorageError:
    return StorageError(f"The service's sessions cannot be read or written ({error}); free space, then ask again.")

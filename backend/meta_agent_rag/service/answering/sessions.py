"""Follow-up questions: a client's earlier questions in a session, so that "and when did she die?" is understood."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ...chat.history import History
from ...chat.memory import Limits, bounded
from ...chat.store import Sessions, Stored, open_sessions

_FOLDER = "service"


@dataclass(frozen=True, kw_only=True)
class ClientSessions:
    """Sessions on disk; a client sees only its own. Exchanges beyond MEMORY_FOLD_AT are forgotten."""

    sessions: Sessions
    limits: Limits

    async def before(self, client_id: str, session: str, corpus: str) -> History:
        """The earlier questions about the same corpus; empty if the session was about another one."""
        return _about(await self.sessions.load(_name(client_id, session)), corpus)

    async def remember(self, client_id: str, session: str, corpus: str, **exchange: str) -> None:
        """Add an exchange, with the fields of `History.with_exchange`. Raises `StorageError`."""

        def longer(stored: Stored | None) -> Stored:
            history = _about(stored, corpus).with_exchange(**exchange)
            return Stored(corpus=corpus, history=bounded(history, self.limits).history)

        await self.sessions.change(_name(client_id, session), longer)


def _about(stored: Stored | None, corpus: str) -> History:
    return stored.history if stored is not None and stored.corpus == corpus else History()


@asynccontextmanager
async def open_client_sessions(data_dir: Path, limits: Limits) -> AsyncIterator[ClientSessions]:
    """The sessions in a data folder. Raises `StorageError` if they cannot be read."""
    async with open_sessions(data_dir / _FOLDER) as sessions:
        yield ClientSessions(sessions=sessions, limits=limits)


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
    """The number of sessions unused since a moment; with `drop` they are deleted. Raises `StorageError`."""
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

"""What is kept between the questions of clients: their sessions, and a coach for each corpus."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ..agent.engine import Engine
from ..chat.coach.coach import Coach
from ..chat.coach.scope import TopicScope, subject_of
from ..chat.history import History
from ..chat.store import Sessions, Stored, open_sessions
from ..retrieval.hybrid import HybridRetriever, Retriever
from .request_record import RequestRecord

CONTEXT = "context"
"""The name under which answers from a supplied text are checked and remembered, since it has no corpus."""
_SESSIONS = "service"


@dataclass(frozen=True, kw_only=True)
class Coaches:
    """One coach per corpus; its topics are read on its first message, and again after the corpus has changed."""

    engine: Engine
    retrievers: Mapping[str, Retriever]
    _held: dict[str, tuple[int, Coach]] = field(default_factory=dict, repr=False)

    async def coach(self, corpus: str) -> Coach:
        """The coach of a corpus."""
        settings, retriever = self.engine.settings, self.retrievers[corpus]
        known = retriever if isinstance(retriever, HybridRetriever) else None
        catalogue = None if known is None else known.corpus.catalogue
        version = 0 if catalogue is None else await asyncio.to_thread(catalogue.version)
        held = self._held.get(corpus)
        if held is None or held[0] != version:
            subject = await asyncio.to_thread(subject_of, settings.scope_topics, catalogue)
            encoder = self.engine.monitor_encoder if known is None else known.encoder
            scope = TopicScope(subject=subject, encoder=encoder, threshold=settings.scope_threshold)
            coach = Coach(model=self.engine.model, retriever=retriever, scope=scope, topics=subject.topics)
            self._held[corpus] = held = (version, coach)
        return held[1]


@dataclass(frozen=True, kw_only=True)
class ClientSessions:
    """Sessions on disk; a client sees only its own."""

    sessions: Sessions

    async def before(self, record: RequestRecord) -> History:
        """The earlier questions about the same corpus; empty if the session was about another one."""
        if record.session is None:
            return History()
        return _about(await self.sessions.load(f"{record.client.id}.{record.session}"), record.corpus or CONTEXT)

    async def remember(self, record: RequestRecord, **exchange: str) -> None:
        """Add an exchange, with the fields of `History.with_exchange`. Raises `StorageError`."""
        if record.session is None:
            return
        corpus = record.corpus or CONTEXT

        def longer(stored: Stored | None) -> Stored:
            return Stored(corpus=corpus, history=_about(stored, corpus).with_exchange(**exchange))

        await self.sessions.change(f"{record.client.id}.{record.session}", longer)


def _about(stored: Stored | None, corpus: str) -> History:
    return stored.history if stored is not None and stored.corpus == corpus else History()


@asynccontextmanager
async def open_client_sessions(data_dir: Path) -> AsyncIterator[ClientSessions]:
    """The sessions in a data folder. Raises `StorageError` if they cannot be read."""
    async with open_sessions(data_dir / _SESSIONS) as sessions:
        yield ClientSessions(sessions=sessions)


async def forget_sessions(data_dir: Path, client_id: str) -> None:
    """Delete a client's sessions. Raises `StorageError`."""
    async with open_sessions(data_dir / _SESSIONS) as sessions:
        for name in await sessions.names():
            if name.startswith(f"{client_id}."):
                await sessions.drop(name)


async def unused_sessions(data_dir: Path, since: datetime, *, drop: bool) -> int:
    """The number of sessions unused since a moment; with `drop` they are deleted. Raises `StorageError`."""
    async with open_sessions(data_dir / _SESSIONS) as sessions:
        unused = await sessions.names(before=since)
        for name in unused if drop else ():
            await sessions.drop(name)
        return len(unused)

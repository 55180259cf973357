"""Queries a service continuously while it, or its database, is killed; then compares answers with records."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
from sqlalchemy import func, select

from meta_agent_rag.service.audit import open_audit
from meta_agent_rag.service.database import AUDIT, open_database
from meta_agent_rag.settings import Settings

_COUNTED = "x-ratelimit-limit"
_BETWEEN_TRIES = 0.02
_PATIENCE_SECONDS = 120.0


@dataclass(kw_only=True)
class Storm:
    """The load: clients, questions and service; `received` are query ids of recorded responses, `statuses` codes.

    Only responses to a known key are recorded: if keys cannot be read in time, the client is unknown.
    """

    url: str
    token: str
    body: Mapping[str, Any]
    clients: int = 6
    received: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    _over: bool = False

    async def through(self, events: Sequence[Callable[[], object]], *, answers: int, chance: random.Random) -> None:
        """Trigger each event at a random moment after N more responses; end with answers after the last event."""
        asking = [asyncio.create_task(self._keep_asking()) for _ in range(self.clients)]
        try:
            for event in events:
                await self._more(answers)
                await asyncio.sleep(0.1 * chance.random())
                await asyncio.to_thread(event)
            await self._more(answers)
        finally:
            self._over = True
            await asyncio.gather(*asking)

    async def _more(self, answers: int) -> None:
        wanted = len(self.received) + answers
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while len(self.received) < wanted:  # noqa: ASYNC110  # six clients, without an event for each number
                await asyncio.sleep(_BETWEEN_TRIES)

    async def _keep_asking(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx.AsyncClient(headers=headers, timeout=30) as client:
            while not self._over:
                with suppress(httpx.TransportError):
                    response = await client.post(f"{self.url}/v1/ask", json=dict(self.body))
                    if _COUNTED in response.headers:
                        self.received.append(response.headers["x-query-id"])
                    self.statuses[response.status_code] += 1
                    continue
                await asyncio.sleep(_BETWEEN_TRIES)


async def missing_or_doubled(settings: Settings, received: Sequence[str]) -> tuple[int, int, int]:
    """How many responses have no row and several rows, and how many rows have no response."""
    query = select(AUDIT.c.query_id, func.count()).group_by(AUDIT.c.query_id)
    async with open_database(settings) as engine:
        async with open_audit(engine, settings.marag_data_dir) as log:  # inserts what a kill left on this machine
            assert log.fault is None
        async with engine.connect() as connection:
            rows = {str(id_): int(count) for id_, count in await connection.execute(query)}
    doubled = sum(count > 1 for count in rows.values())
    return len(set(received) - rows.keys()), doubled, len(rows.keys() - set(received))

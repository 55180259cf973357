"""A database that accepts connections but stops replying: every request is still answered in time."""

import asyncio
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from meta_agent_rag.service.request import new_id
from meta_agent_rag.service.retention import latest
from tests.postgres_server import Postgres
from tests.service import ASKED, Running, bearer, code_of, running

DEADLINE = 2.0
KNOWN = 2.1
"""Seconds after which a key is looked up again."""


@dataclass(kw_only=True)
class Wire:
    """A loopback proxy to a server. Once it hangs, it accepts connections and data but forwards nothing."""

    upstream: int
    port: int = 0
    hangs: bool = False
    open: set[StreamWriter] = field(default_factory=set)

    async def carried(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.open.add(writer)
        try:
            if self.hangs:
                await self._forwarded(reader, writer)
                return
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self.upstream)
            back = asyncio.create_task(self._forwarded(from_server, writer))
            await self._forwarded(reader, to_server)
            to_server.close()
            await back
        finally:
            self.open.discard(writer)
            writer.close()

    async def _forwarded(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(ConnectionError):
            while part := await reader.read(65536):
                if not self.hangs:
                    writer.write(part)

    def recover(self) -> None:
        """Serve new connections again; existing ones have lost their data."""
        self.hangs = False
        for writer in self.open:
            writer.close()


@asynccontextmanager
async def wire_to(port: int) -> AsyncIterator[Wire]:
    wire = Wire(upstream=port)
    server = await asyncio.start_server(wire.carried, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        wire.recover()
        while wire.open:  # noqa: ASYNC110  # no event signals their end
            await asyncio.sleep(0.01)


async def _timed(response: Awaitable[httpx.Response]) -> httpx.Response:
    started = time.monotonic()
    found = await response
    assert time.monotonic() - started < DEADLINE + 0.3
    return found


def _tasks() -> int:
    """The number of tasks, excluding those of the wire."""
    return sum("Wire" not in repr(task.get_coro()) for task in asyncio.all_tasks())


async def _assert_unavailable(running: Running, record: str, capped: str) -> None:
    """Requests that need the database are refused in time."""
    client = running.client
    stranger = f"marag_{'0' * 12}_{'x' * 43}"
    refused = await asyncio.gather(
        _timed(client.post("/v1/ask", json=ASKED, headers=bearer(stranger))),
        _timed(client.post("/v1/ask", json=ASKED, headers=bearer(capped))),
        _timed(client.get(f"/v1/queries/{record}")),
    )
    assert [(response.status_code, code_of(response)) for response in refused] == [(503, "unavailable")] * 3


@pytest.mark.slow
async def test_requests_are_answered_in_time_while_the_database_hangs(
    postgresql: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgresql.new_database(new_id())
    async with wire_to(postgresql.port) as wire:
        monkeypatch.setenv("DATABASE_URL", url.replace(f":{postgresql.port}/", f":{wire.port}/"))
        async with running(tmp_path, f"SERVICE_DEADLINE_SECONDS={DEADLINE}") as service:
            capped = await service.token_for("capped", daily_usd=1.0)
            asked = [await service.ask(), await service.client.post("/v1/ask", json=ASKED, headers=bearer(capped))]
            tasks = _tasks()
            wire.hangs = True
            record = asked[0].json()["query_id"]
            await _assert_unavailable(service, record, capped)  # over connections that stopped replying
            await asyncio.sleep(KNOWN)
            assert (await _timed(service.ask())).status_code == 200, "a known key is still served"
            await _assert_unavailable(service, record, capped)  # over new connections that never reply
            rows = service.service.audit.waiting
            assert rows == 3, "two refusals of the capped key and one answer"
            wire.recover()
            async with asyncio.timeout(30):
                while service.service.audit.waiting or _tasks() > tasks:  # noqa: ASYNC110  # no event signals it
                    await asyncio.sleep(0.02)
            assert (await service.client.get(f"/v1/queries/{record}")).status_code == 200
            assert len(await latest(service.service.audit.engine, 100)) == 2 + rows

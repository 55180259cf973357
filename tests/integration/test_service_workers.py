"""Several workers on one port: they share rate limits, are restarted if they die, and drain on shutdown."""

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from limits import RateLimitItemPerSecond
from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from meta_agent_rag.service.access import RateLimits, open_limits
from tests.loop import settings_in
from tests.service import ASKED, Nursery, ServiceProcess, bearer, code_of, service_process

LIMIT = 5


async def ask_concurrently(process: ServiceProcess, count: int) -> list[httpx.Response]:
    """Ask `count` times at once, each on its own connection."""
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(headers=bearer(process.token), timeout=90))
            for _ in range(count)
        ]
        return list(await asyncio.gather(*(client.post(f"{process.url}/v1/ask", json=ASKED) for client in clients)))


def worker_pids(process: ServiceProcess) -> list[int]:
    return [int(number) for number in re.findall(r"Worker (\d+) started", process.log.read_text())]


@pytest.mark.slow
async def test_workers_share_rate_limits_restart_and_drain(
    redis_url: str, nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("SERVICE_RATE_PER_MINUTE", "8")
    monkeypatch.setenv("SERVICE_DEADLINE_SECONDS", "60")
    async with service_process(nursery, tmp_path, workers=2) as process:
        first = await ask_concurrently(process, 6)
        assert [response.status_code for response in first] == [200] * 6
        victim, other = worker_pids(process)
        os.kill(victim, signal.SIGKILL)
        async with asyncio.timeout(30):
            while len(worker_pids(process)) < 3:  # noqa: ASYNC110  # no event signals it from another process
                await asyncio.sleep(0.05)
        filled = time.monotonic()
        more = await ask_concurrently(process, 6)
        assert sorted(response.status_code for response in more) == [200] * 2 + [429] * 4, (
            "across both workers and a restart of one"
        )
        begun = time.monotonic()
        assert await asyncio.to_thread(process.stop, signal.SIGTERM) == 0
        assert time.monotonic() - begun < 10
        await asyncio.to_thread(process.start)
        (late,) = await ask_concurrently(process, 1)
        if time.monotonic() - filled < 60:  # a slow machine may exceed the window
            assert (late.status_code, code_of(late)) == (429, "rate_limited"), "across a service restart"
        await asyncio.to_thread(process.stop, signal.SIGKILL)
        async with asyncio.timeout(30):
            while any(map(alive, worker_pids(process))):  # noqa: ASYNC110  # nor here
                await asyncio.sleep(0.05)
    assert other not in worker_pids(process)[2:]
    rows = json.loads((await asyncio.to_thread(CliRunner().invoke, app, ["audit", "tail", "--json"])).stdout)
    assert len({row["query_id"] for row in rows}) == len(rows) == 13


def alive(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


@asynccontextmanager
async def rate_limiters(redis_url: str | None, folder: Path, count: int) -> AsyncIterator[list[RateLimits]]:
    """Rate limits of `count` services, with a window of one second."""
    settings = settings_in(folder, *([] if redis_url is None else [f"REDIS_URL={redis_url}"]))
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(open_limits(settings)) for _ in range(count)]
        yield [replace(limits, item=RateLimitItemPerSecond(LIMIT)) for limits in opened]


@pytest.mark.parametrize("shared", [False, True])
async def test_no_window_exceeds_the_limit(shared: bool, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = request.getfixturevalue("redis_url") if shared else None
    admitted: list[tuple[float, float]] = []

    async def hammer(limits: RateLimits, until: float) -> None:
        while (before := time.time()) < until:
            if (await limits.admit("client", "ask"))[1] is None:
                admitted.append((before, time.time()))
            await asyncio.sleep(0.003)

    async with rate_limiters(url, tmp_path, 2 if shared else 1) as services:
        await asyncio.gather(*(hammer(limits, time.time() + 2.5) for limits in services))
    admitted.sort()
    assert 2 * LIMIT <= len(admitted) <= 3 * LIMIT
    for first, last in zip(admitted, admitted[LIMIT:], strict=False):
        assert last[1] - first[0] >= 1.0


async def test_without_redis_no_uncounted_request_is_admitted(tmp_path: Path) -> None:
    async with rate_limiters("redis://127.0.0.1:1", tmp_path, 1) as (limits,):
        with pytest.raises(Exception, match="Rates cannot be counted") as refused:
            await limits.admit("client", "ask")
    assert getattr(refused.value, "status", None) == 503


def test_single_process_options_are_rejected_with_several_workers() -> None:
    servers = ["--set", "QDRANT_URL=http://127.0.0.1:1", "--set", "ELASTICSEARCH_URL=http://127.0.0.1:1"]
    for words, said in (([], "its own uploads"), (servers, "REDIS_URL")):
        done = CliRunner().invoke(app, ["serve", "--port", "0", "--workers", "2", *words])
        assert (done.exit_code, said in done.output) == (2, True), done.output
        assert len(done.output.strip().splitlines()) == 1


@pytest.mark.slow
async def test_the_service_exits_if_the_first_worker_cannot_start(nursery: Nursery, tmp_path: Path) -> None:
    (tmp_path / "data" / "service.sqlite").write_text("no database " * 100)
    wanted = {
        "port": 0,
        "folder": str(tmp_path),
        "log": str(tmp_path / "log"),
        "workers": 2,
        "corpora": [],
        "env": dict(os.environ),
    }
    pid = nursery.request(**wanted)
    assert await asyncio.to_thread(lambda: nursery.request(wait=pid)) != 0
    assert "not a database" in (tmp_path / "log").read_text()

"""Client sessions of the service: concurrent exchanges are all remembered, and unused sessions dropped."""

import asyncio
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from meta_agent_rag.chat.memory import Limits
from meta_agent_rag.service.answering.sessions import open_client_sessions, unused_sessions
from tests.forked import forked_call

MANY = Limits(tokens=10_000, exchanges=50, fold_at=50)


async def test_concurrent_exchanges_of_one_session_are_all_remembered(tmp_path: Path) -> None:
    async with open_client_sessions(tmp_path, Limits(tokens=10_000, exchanges=20, fold_at=20)) as sessions:
        asked = [f"question {number}" for number in range(6)]
        await asyncio.gather(
            *(sessions.remember("me", "s", "notes", question=one, answer="a", standalone=one) for one in asked)
        )
        kept = await sessions.before("me", "s", "notes")
    assert sorted(one.question for one in kept.exchanges) == asked
    assert kept.turns == len(asked)


def dozen(folder: Path, worker: str, other: str) -> None:
    """A worker that remembers a dozen exchanges once the other worker is ready."""

    def together() -> None:
        (folder / worker).touch()
        while not (folder / other).exists():
            time.sleep(0.001)

    async def work() -> None:
        async with open_client_sessions(folder, MANY) as sessions:
            await asyncio.to_thread(together)
            for number in range(12):
                asked = f"{worker} {number}"
                await sessions.remember("me", "s", "notes", question=asked, answer="a", standalone="q")

    asyncio.run(work())


async def test_exchanges_of_one_session_by_two_workers_are_all_remembered(tmp_path: Path) -> None:
    async with open_client_sessions(tmp_path, MANY):
        workers = [forked_call(dozen, tmp_path, *names, folder=tmp_path) for names in ("ab", "ba")]
    assert [await asyncio.to_thread(worker.ended) for worker in workers] == [0, 0]
    async with open_client_sessions(tmp_path, MANY) as sessions:
        kept = await sessions.before("me", "s", "notes")
    assert kept.turns == len({one.question for one in kept.exchanges}) == 24


async def test_a_cancelled_writer_does_not_block_others(tmp_path: Path) -> None:
    exchange = {"question": "q", "answer": "a", "standalone": "q"}
    async with open_client_sessions(tmp_path, MANY) as first, open_client_sessions(tmp_path, MANY) as second:
        with closing(sqlite3.connect(first.sessions.path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            waiting = asyncio.create_task(second.remember("me", "s", "notes", **exchange))
            await asyncio.sleep(0.05)
            waiting.cancel()
            other.execute("ROLLBACK")
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await first.remember("me", "s", "notes", **exchange)
        await second.remember("me", "s", "notes", **exchange)
        assert (await first.before("me", "s", "notes")).turns in {2, 3}  # the first one may have been written


async def test_unused_sessions_are_dropped(tmp_path: Path) -> None:
    limits = Limits(tokens=10_000, exchanges=20, fold_at=20)
    async with open_client_sessions(tmp_path, limits) as sessions:
        await sessions.remember("me", "old", "notes", question="q", answer="a", standalone="q")
        between = datetime.now(UTC)
        await sessions.remember("me", "new", "notes", question="q", answer="a", standalone="q")
    assert await unused_sessions(tmp_path, between, drop=False) == 1
    assert await unused_sessions(tmp_path, between, drop=True) == 1
    assert await unused_sessions(tmp_path, between, drop=True) == 0
    async with open_client_sessions(tmp_path, limits) as sessions:
        assert (await sessions.before("me", "old", "notes")).is_empty
        assert not (await sessions.before("me", "new", "notes")).is_empty
    assert await unused_sessions(tmp_path / "none", between, drop=True) == 0

"""`kill -9` during updates: the embedded dense store keeps acknowledged updates and no partial ones."""

import asyncio
import random
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.stores import StorePlace, discover_stores
from tests.forked import forked_call

DIMENSION = 32
BATCH = 600
"""Passages per update; more than the store sends to the engine at once."""
KEPT = 3
"""Updates whose passages are kept; each update removes those of an older one."""


def place(folder: str) -> StorePlace:
    return StorePlace(folder=Path(folder), name="unused")


def batch(number: int) -> list[Passage]:
    """The passages of one update; even ones recur in the next update with different text."""
    return [
        Passage(id=f"{number // 2}-{position}", doc_id=str(number), title="", text=f"Update {number}.")
        for position in range(BATCH)
    ]


def outdated(number: int) -> list[str]:
    return [passage.id for passage in batch(number - 2 * KEPT)] if number >= 2 * KEPT else []


def state_after(number: int) -> dict[str, str]:
    """The store's contents after update `number`."""
    state: dict[str, str] = {}
    for done in range(max(0, number - 4 * KEPT), number + 1):
        for passage_id in outdated(done):
            state.pop(passage_id, None)
        state.update({passage.id: passage.text for passage in batch(done)})
    return state


async def update(folder: str, number: int) -> None:
    """Run updates from `number` on, acknowledging each."""
    vectors = np.random.default_rng(number).normal(size=(BATCH, DIMENSION)).astype("float32")
    async with discover_stores().dense["qdrant-edge"].open(place(folder), DIMENSION) as store:
        while True:
            await store.update(batch(number), vectors, removed=outdated(number))
            sys.stdout.write(f"{number}\n")
            number += 1


def updating(folder: str, number: int) -> None:
    """The child process's entry point."""
    asyncio.run(update(folder, number))


@pytest.mark.slow
async def test_acknowledged_updates_survive_a_kill_and_partial_ones_do_not(tmp_path: Path) -> None:
    folder, pauses = tmp_path / "dense", random.Random(7)
    done, killed_within = -1, 0
    for _ in range(5):
        acknowledged = _run_and_kill(folder, done + 1, pauses.uniform(0.05, 0.4))
        async with discover_stores().dense["qdrant-edge"].open(place(str(folder)), DIMENSION) as store:
            held = {passage.id: passage.text async for passage in store.scan()}
        latest = max(done, acknowledged)
        assert held in (state_after(latest), state_after(latest + 1))
        killed_within += held == state_after(latest)
        done = latest if held == state_after(latest) else latest + 1
    assert done > 5
    assert killed_within, "no kill interrupted an update"


def _run_and_kill(folder: Path, number: int, pause: float) -> int:
    """Run updates from `number` on in a child, kill it, and return the last one it acknowledged."""
    child = forked_call(updating, str(folder), number, folder=folder.parent)
    while child.running and not (child.out.exists() and child.out.read_bytes().count(b"\n") > 1):
        time.sleep(0.01)
    time.sleep(pause)
    assert child.killed(), child.err.read_text()
    complete = [int(line) for line in child.out.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    assert complete, "the child failed before its first update"
    return complete[-1]

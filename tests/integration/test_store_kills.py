"""`kill -9` in the midst of updates: the embedded dense store keeps what it said it has, and no halves."""

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
"""Passages of an update, more than the store sends to the engine at once."""
KEPT = 3
"""Updates whose passages stay; each removes those of the one before the last of them."""


def place(folder: str) -> StorePlace:
    return StorePlace(folder=Path(folder), name="unused")


def batch(number: int) -> list[Passage]:
    """The passages of one update: those of the even ones come again, with another text, in the next."""
    return [
        Passage(id=f"{number // 2}-{position}", doc_id=str(number), title="", text=f"Update {number}.")
        for position in range(BATCH)
    ]


def outdated(number: int) -> list[str]:
    return [passage.id for passage in batch(number - 2 * KEPT)] if number >= 2 * KEPT else []


def state_after(number: int) -> dict[str, str]:
    """What the store holds once the update `number` is done."""
    state: dict[str, str] = {}
    for done in range(max(0, number - 4 * KEPT), number + 1):
        for passage_id in outdated(done):
            state.pop(passage_id, None)
        state.update({passage.id: passage.text for passage in batch(done)})
    return state


async def update(folder: str, number: int) -> None:
    """Do updates from `number` on, and say of each that it is done."""
    vectors = np.random.default_rng(number).normal(size=(BATCH, DIMENSION)).astype("float32")
    async with discover_stores().dense["qdrant-edge"].open(place(folder), DIMENSION) as store:
        while True:
            await store.update(batch(number), vectors, removed=outdated(number))
            sys.stdout.write(f"{number}\n")
            number += 1


def updating(folder: str, number: int) -> None:
    """What the child does."""
    asyncio.run(update(folder, number))


@pytest.mark.slow
async def test_an_acknowledged_update_outlives_a_kill_and_no_half_of_another_does(tmp_path: Path) -> None:
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
    assert killed_within, "no kill came in the midst of an update"


def _run_and_kill(folder: Path, number: int, pause: float) -> int:
    """Have a child do updates from `number` on, kill it, and return the last one that it acknowledged."""
    child = forked_call(updating, str(folder), number, folder=folder.parent)
    while child.running and not (child.out.exists() and child.out.read_bytes().count(b"\n") > 1):
        time.sleep(0.01)
    time.sleep(pause)
    assert child.killed(), child.err.read_text()
    complete = [int(line) for line in child.out.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    assert complete, "the child failed before its first update"
    return complete[-1]

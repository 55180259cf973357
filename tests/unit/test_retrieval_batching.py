"""One encoder shared by many tasks."""

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.vectors import FloatMatrix


class Panic(BaseException):
    """What a library in Rust raises."""


class GatedEncoder(HashEncoder):
    """Records its batches and waits at a gate in each; the texts "bad" and "worse" raise an error."""

    def __init__(self) -> None:
        super().__init__(16)
        self.batches: list[tuple[str, ...]] = []
        self.threads: set[int] = set()
        self.entered = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        self.batches.append(tuple(texts))
        self.threads.add(threading.get_ident())
        self.entered.release()
        assert self.gate.acquire(timeout=10)
        if "bad" in texts:
            raise ArithmeticError("bad text")
        if "worse" in texts:
            raise Panic
        return super().encode_queries(texts)


async def first_batch_running(gated: GatedEncoder, encoder: AsyncEncoder) -> "asyncio.Task[FloatMatrix]":
    task = asyncio.create_task(encoder.queries(["first"]))
    assert await asyncio.to_thread(gated.entered.acquire, timeout=10)
    return task


def open_gate(gated: GatedEncoder) -> None:
    gated.gate.release(100)


async def test_waiting_requests_are_merged_into_one_batch() -> None:
    gated = GatedEncoder()
    encoder = AsyncEncoder(gated)
    first = await first_batch_running(gated, encoder)
    rest = [asyncio.create_task(encoder.queries([f"a{number}", f"b{number}"])) for number in range(20)]
    await asyncio.sleep(0.01)
    open_gate(gated)
    await first
    for number, rows in enumerate(await asyncio.gather(*rest)):
        assert np.array_equal(rows, HashEncoder(16).encode_queries([f"a{number}", f"b{number}"]))
    assert len(gated.batches) == 2
    assert len(gated.batches[1]) == 40
    assert threading.get_ident() not in gated.threads
    assert len(gated.threads) == 1


async def test_an_error_reaches_every_request_of_its_batch_and_no_other() -> None:
    gated = GatedEncoder()
    encoder = AsyncEncoder(gated)
    first = await first_batch_running(gated, encoder)
    waiting = [asyncio.create_task(encoder.queries([text])) for text in ("good", "bad")]
    await asyncio.sleep(0.01)
    open_gate(gated)
    await first
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ArithmeticError, ArithmeticError]
    assert (await encoder.queries(["after"])).shape == (1, 16)


async def test_a_panic_reaches_the_request_too() -> None:
    gated = GatedEncoder()
    open_gate(gated)
    with pytest.raises(Panic):
        await asyncio.wait_for(AsyncEncoder(gated).queries(["worse"]), timeout=10)


async def test_a_cancelled_request_is_not_encoded() -> None:
    gated = GatedEncoder()
    encoder = AsyncEncoder(gated)
    first = await first_batch_running(gated, encoder)
    unwanted = asyncio.create_task(encoder.queries(["unwanted"]))
    wanted = asyncio.create_task(encoder.queries(["wanted"]))
    await asyncio.sleep(0.01)
    unwanted.cancel()
    await asyncio.sleep(0)
    open_gate(gated)
    await asyncio.gather(first, wanted)
    with pytest.raises(asyncio.CancelledError):
        await unwanted
    assert gated.batches == [("first",), ("wanted",)]


def test_one_encoder_serves_successive_event_loops() -> None:
    encoder = AsyncEncoder(HashEncoder())

    async def use() -> None:
        assert (await encoder.queries(["x", "y"])).shape == (2, 64)
        assert (await encoder.passages([])).shape == (0, 64)
        assert await encoder.dimension() == 64

    asyncio.run(use())
    asyncio.run(use())
    assert encoder.name == "hash-64"

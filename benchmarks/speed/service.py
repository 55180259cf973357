"""The overhead of the service over its model calls: against a bare LangGraph graph that makes the same calls.

A loopback model server and `marag serve` (sample corpus, an audit row for every response) run in separate processes,
the bare graph with ChatOpenAI in this one. Both are measured in alternating blocks, so that other load slows both.
"""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import numpy as np
import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.datasets import Question
from meta_agent_rag.testing.server import model_server

from .rigs.bare import bare_graph, fresh_questions

_BLOCKS = 10
_WARM_UP = 64
_START_SECONDS = 600.0
_WHOLE_RUN = ("SERVICE_DEADLINE_SECONDS=60", "SERVICE_RATE_PER_MINUTE=1000000", "LLM_PROVIDER=deepseek")


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("service")(measure)


@reporting
def measure(
    requests: Annotated[int, typer.Option(help="Requests.")] = 3000,
    clients: Annotated[int, typer.Option(help="Concurrent clients.")] = 16,
    seconds: Annotated[float, typer.Option(help="Response time of the model.")] = 0.2,
    encoder: Annotated[str, typer.Option(help="Encoder of corpus, monitor and checks.")] = "all-MiniLM-L6-v2",
    json_: Json = False,
) -> None:
    """Overhead of a request over the bare graph, at the median and at the 99th percentile."""
    result = asyncio.run(_measured(requests, clients, seconds, encoder))
    if json_:
        print_json(result)
        return
    for key, value in result.items():
        say(f"{key.replace('_', ' ')}: {round(value, 4) if isinstance(value, float) else value}")


async def _measured(requests: int, clients: int, seconds: float, encoder: str) -> dict[str, Any]:
    encoders = (f"ENCODER={encoder}", f"MONITOR_ENCODER={encoder}")
    with (
        tempfile.TemporaryDirectory() as folder,
        model_server(seconds, kind="quoting") as address,
        _service(Path(folder), address, encoders) as (process, client),
    ):
        async with client:
            found = await _both(process, client, address, requests, clients)
    return {"requests": requests, "clients": clients, "model_s": seconds, "encoder": encoder, **found}


async def _both(
    process: "subprocess.Popen[bytes]", client: httpx.AsyncClient, address: str, requests: int, clients: int
) -> dict[str, Any]:
    questions = fresh_questions(_WARM_UP + requests)
    ours: list[tuple[int, float]] = []
    bare: list[tuple[int, float]] = []

    async def ask(question: Question) -> int:
        return (await client.post("/v1/ask", json={"question": question.text})).status_code

    await _load(questions[:_WARM_UP], clients, ask)
    calls = await _calls(address) / _WARM_UP
    spent, memory = _cpu_seconds(process), _memory_mb(process)
    async with bare_graph(address, round(calls)) as graph:

        async def ask_bare(question: Question) -> int:
            await graph.ask(question)
            return 200

        await _load(questions[:clients], clients, ask_bare)
        for block in np.array_split(np.arange(_WARM_UP, len(questions)), _BLOCKS):
            chosen = [questions[number] for number in block]
            ours += await _load(chosen, clients, ask)
            bare += await _load(chosen, clients, ask_bare)
    result: dict[str, Any] = {"calls_per_request": calls, "errors": sum(status != 200 for status, _ in ours)}
    for rank in (50, 99):
        one, other = (float(np.percentile([1000 * taken for _, taken in side], rank)) for side in (ours, bare))
        result |= {f"ours_p{rank}_ms": one, f"bare_p{rank}_ms": other, f"overhead_p{rank}_ms": one - other}
    cpu, grown = _cpu_seconds(process) - spent, _memory_mb(process) - memory
    return {**result, "service_cpu_ms_per_request": 1000 * cpu / requests, "memory_growth_mb": grown}


async def _load(
    questions: Sequence[Question], clients: int, ask: Callable[[Question], Awaitable[int]]
) -> list[tuple[int, float]]:
    """Status and seconds of each question; every client asks the next one as soon as the previous one is answered."""
    waiting, done = iter(questions), list[tuple[int, float]]()

    async def one() -> None:
        for question in waiting:
            started = time.monotonic()
            status = await ask(question)
            done.append((status, time.monotonic() - started))

    await asyncio.gather(*(one() for _ in range(clients)))
    return done


async def _calls(address: str) -> int:
    async with httpx.AsyncClient() as client:
        return int((await client.get(address.removesuffix("/v1") + "/seen")).json()["calls"])


@contextmanager
def _service(
    folder: Path, model_url: str, assignments: Sequence[str]
) -> "Iterator[tuple[subprocess.Popen[bytes], httpx.AsyncClient]]":
    """`marag serve` over the sample corpus, with a model at `model_url` and its data in `folder`, and a client."""
    given = [*_WHOLE_RUN, "DEEPSEEK_API_KEY=loopback", f"LLM_BASE_URL={model_url}", f"MARAG_DATA_DIR={folder}"]
    words = [part for one in (*given, *assignments) for part in ("--set", one)]
    marag = [sys.executable, "-m", "meta_agent_rag.cli.main"]
    made = subprocess.run([*marag, "keys", "create", "measurement", "--json", *words], capture_output=True, check=True)
    headers = {"Authorization": f"Bearer {json.loads(made.stdout)['key']}"}
    log = folder / "service.log"
    with log.open("w") as errors:
        process = subprocess.Popen([*marag, "serve", "--port", "0", *words], stderr=errors)
    try:
        limits = httpx.Limits(max_connections=None)
        yield process, httpx.AsyncClient(base_url=_address(process, log), headers=headers, limits=limits, timeout=60.0)
    finally:
        process.terminate()
        process.wait(60)


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(r"Listening on (http://[\d.:]+)", log.read_text()):
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"The service did not start: {log.read_text()[-2000:]}")


def _memory_mb(process: "subprocess.Popen[bytes]") -> float:
    """Resident memory, as Linux reports it."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _cpu_seconds(process: "subprocess.Popen[bytes]") -> float:
    """CPU time so far, as Linux reports it."""
    return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9

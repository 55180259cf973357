"""The overhead of loop, ledger and journals over the model calls that they make.

A loopback server in its own process answers each call after a fixed time. The benchmark runs
against it, alternating with a bare LangGraph graph that makes the same calls with ChatOpenAI, in
one process.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.datasets import Question
from meta_agent_rag.testing.server import model_server

from .rigs.bare import BareGraph, bare_graph, fresh_questions, idle_graph
from .rigs.loopback_run import answered, require_all


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("orchestration")(orchestration)


@reporting
def orchestration(
    n: Annotated[int, typer.Option("--n", help="Questions.")] = 64,
    concurrency: Annotated[int, typer.Option(help="Questions in parallel.")] = 32,
    seconds: Annotated[float, typer.Option(help="Response time of the model.")] = 1.0,
    repeats: Annotated[int, typer.Option(help="Measured runs per side; medians are reported.")] = 3,
    json_: Json = False,
) -> None:
    """Wall time of a run against the ideal and against a bare LangGraph graph with the same calls."""
    with model_server(seconds) as address, tempfile.TemporaryDirectory() as folder:
        load = Workload(address=address, n=n, concurrency=concurrency, seconds=seconds)
        result = asyncio.run(measured(load, Path(folder), repeats))
    if json_:
        print_json(result)
        return
    say(f"{n} questions, {concurrency} in parallel, {result['calls_per_question']:g} calls each of {seconds:g} s")
    say(f"ideal {result['ideal_s']:.2f} s; ours {result['ours_s']:.2f} s; bare {result['bare_s']:.2f} s")
    say(f"(medians of {repeats} runs per side, alternating)")
    say(f"ours / ideal {result['ours_over_ideal']:.3f}; ours / bare {result['ours_over_bare']:.3f}")
    say(f"most calls in progress at once: ours {result['ours_most_at_once']}, bare {result['bare_most_at_once']}")
    say(f"CPU per call: ours {result['ours_cpu_ms_per_call']:.2f} ms, bare {result['bare_cpu_ms_per_call']:.2f} ms,")
    say(f"of which LangGraph's for one node {result['langgraph_cpu_ms_per_node']:.2f} ms")


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The workload of both sides: `n` questions, `concurrency` at once, against a server that takes `seconds`."""

    address: str
    n: int
    concurrency: int
    seconds: float


async def measured(load: Workload, folder: Path, repeats: int) -> dict[str, Any]:
    """Both sides, alternating, as medians over the repeats; units as in the names."""
    ours: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    idle: list[tuple[float, float]] = []
    questions = fresh_questions(load.n)
    calls = await _ours(load, questions[:2], folder / "warm", [])
    per_question = calls // 2
    await _bare(load, questions[:2], per_question, [])
    await _most_at_once(load)
    at_once: dict[str, list[int]] = {"ours": [], "bare": []}
    for repeat in range(repeats):
        calls = await _ours(load, questions, folder / str(repeat), ours)
        at_once["ours"].append(await _most_at_once(load))
        await _bare(load, questions, per_question, bare)
        at_once["bare"].append(await _most_at_once(load))
        with _timed(idle):
            await _all(idle_graph(per_question), questions, load.concurrency)
    ideal = calls * load.seconds / load.concurrency
    ours_s, bare_s = (statistics.median(wall for wall, _ in side) for side in (ours, bare))
    ours_cpu, bare_cpu = (statistics.median(cpu for _, cpu in side) for side in (ours, bare))
    return {
        "questions": load.n,
        "concurrency": load.concurrency,
        "calls_per_question": calls / load.n,
        "ideal_s": ideal,
        "ours_s": ours_s,
        "bare_s": bare_s,
        "ours_over_ideal": ours_s / ideal,
        "ours_over_bare": ours_s / bare_s,
        **{f"{side}_most_at_once": int(statistics.median(counts)) for side, counts in at_once.items()},
        "ours_cpu_ms_per_call": 1000 * ours_cpu / calls,
        "bare_cpu_ms_per_call": 1000 * bare_cpu / calls,
        "langgraph_cpu_ms_per_node": 1000 * statistics.median(cpu for _, cpu in idle) / calls,
        "repeats": repeats,
    }


async def _most_at_once(load: Workload) -> int:
    """The maximum number of calls in progress at the server since it was last queried."""
    async with httpx.AsyncClient(trust_env=False) as client:
        seen = await client.get(load.address.removesuffix("/v1") + "/seen")
    return int(seen.json()["most_at_once"])


async def _ours(load: Workload, questions: Sequence[Question], folder: Path, times: list[tuple[float, float]]) -> int:
    """One run of the benchmark; returns the number of calls that it made."""
    with _timed(times):
        outcome = await answered(
            load.address,
            questions,
            folder,
            concurrency=load.concurrency,
            max_metacognitive_rounds=1,
            monitor_policy="agreement",
        )
    require_all(outcome)
    return sum(row["llm_calls"] for row in outcome.rows)


async def _bare(load: Workload, questions: Sequence[Question], calls: int, times: list[tuple[float, float]]) -> None:
    """The same number of calls through a graph with ChatOpenAI and nothing else."""
    async with bare_graph(load.address, calls) as bare:
        with _timed(times):
            await _all(bare, questions, load.concurrency)


async def _all(graph: BareGraph, questions: Sequence[Question], concurrency: int) -> None:
    gate = asyncio.Semaphore(concurrency)

    async def one(question: Question) -> None:
        async with gate:
            await graph.ask(question)

    await asyncio.gather(*(one(question) for question in questions))


@contextmanager
def _timed(times: list[tuple[float, float]]) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    times.append((time.perf_counter() - wall, time.process_time() - cpu))

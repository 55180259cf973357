"""The overhead of the service over its model calls, and whether it keeps its promises under load.

A loopback model server and `marag serve` (sample corpus, an audit row for every response) run in separate
processes. The bare graph is LangGraph with ChatOpenAI in this process, and makes the same number of calls; both
sides are measured in alternating blocks, so that other load on the machine slows both.
"""

import asyncio
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import httpx
import numpy as np
import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import InputError
from meta_agent_rag.testing.server import model_server

from .rigs.bare import bare_graph, fresh_questions
from .rigs.load import Load, Response, ask, service

_BLOCKS = 10
_WARM_UP = 64
_HANGS = 0.3
_DEADLINE = 5.0
_TIMES_CAPACITY = 4
_SECONDS_BETWEEN_TRIES = 1.0
PARTS = ("overhead", "deadline", "overload")


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("service")(measure)


@reporting
def measure(
    requests: Annotated[int, typer.Option(help="Requests of the part `overhead`.")] = 3000,
    deadline_requests: Annotated[int, typer.Option(help="Requests of the part `deadline`.")] = 1000,
    overload_requests: Annotated[int, typer.Option(help="Requests of the part `overload`.")] = 1000,
    clients: Annotated[int, typer.Option(help="Concurrent clients.")] = 16,
    seconds: Annotated[float, typer.Option(help="Response time of the model.")] = 0.2,
    encoder: Annotated[str, typer.Option(help="Encoder of corpus, monitor and checks.")] = "all-MiniLM-L6-v2",
    part: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(PARTS)}, any number; default: all.")] = None,
    json_: Json = False,
) -> None:
    """Overhead over the bare graph; the deadline while model calls hang; rejections at four times the capacity."""
    wanted = tuple(part or PARTS)
    if unknown := [name for name in wanted if name not in PARTS]:
        raise InputError(f"The part {unknown[0]!r} is unknown; choose from: {', '.join(PARTS)}.")
    said = (f"ENCODER={encoder}", f"MONITOR_ENCODER={encoder}")
    result: dict[str, Any] = {"clients": clients, "model_s": seconds, "encoder": encoder}
    if "overhead" in wanted:
        result["overhead"] = asyncio.run(_overhead(requests, clients, seconds, said))
    if "deadline" in wanted:
        result["deadline"] = asyncio.run(_deadline(deadline_requests, clients, seconds, said))
    if "overload" in wanted:
        result["overload"] = asyncio.run(_overload(overload_requests, clients, seconds, said))
    if json_:
        print_json(result)
        return
    for name in wanted:
        say(f"{name}:")
        for key, value in result[name].items():
            say(f"  {key.replace('_', ' ')}: {round(value, 4) if isinstance(value, float) else value}")


async def _overhead(requests: int, clients: int, seconds: float, said: Sequence[str]) -> dict[str, Any]:
    said = (*said, "SERVICE_DEADLINE_SECONDS=60")  # slow requests should be measured, not cut off
    with tempfile.TemporaryDirectory() as folder, model_server(seconds, kind="quoting") as address:
        async with service(Path(folder), address, *said) as running, running.client(clients) as client:
            questions = fresh_questions(_WARM_UP + requests)
            ours, bare = Load(clients=clients), Load(clients=clients)
            await ours.run(questions[:_WARM_UP], lambda question: ask(client, question))
            calls = (await _seen(address))["calls"] / _WARM_UP
            ours.outcomes.clear()
            memory = running.memory_mb()
            spent = running.cpu_seconds()
            async with bare_graph(address, round(calls)) as graph:

                async def ask_bare(question: Question) -> int:
                    await graph.ask(question)
                    return 200

                await bare.run(questions[:clients], ask_bare)
                bare.outcomes.clear()
                for block in np.array_split(np.arange(_WARM_UP, len(questions)), _BLOCKS):
                    chosen = [questions[number] for number in block]
                    await ours.run(chosen, lambda question: ask(client, question))
                    await bare.run(chosen, ask_bare)
            grown = _difference(running.memory_mb(), memory)
            cpu = _difference(running.cpu_seconds(), spent)
    ours_ms, bare_ms = _ms(ours.outcomes), _ms(bare.outcomes)
    return {
        "requests": requests,
        "calls_per_request": calls,
        "errors": sum(outcome.status != 200 for outcome in ours.outcomes),
        "ours_p50_ms": _quantile(ours_ms, 50),
        "bare_p50_ms": _quantile(bare_ms, 50),
        "overhead_p50_ms": _quantile(ours_ms, 50) - _quantile(bare_ms, 50),
        "ours_p99_ms": _quantile(ours_ms, 99),
        "bare_p99_ms": _quantile(bare_ms, 99),
        "overhead_p99_ms": _quantile(ours_ms, 99) - _quantile(bare_ms, 99),
        "service_cpu_ms_per_request": None if cpu is None else 1000 * cpu / requests,
        "memory_growth_mb": grown,
    }


async def _deadline(requests: int, clients: int, seconds: float, said: Sequence[str]) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        model_server(seconds, kind="quoting", hangs=_HANGS) as address,
    ):
        said = (*said, f"SERVICE_DEADLINE_SECONDS={_DEADLINE}")
        async with service(Path(folder), address, *said) as running, running.client(clients) as client:
            load = Load(clients=clients)
            await load.run(fresh_questions(requests), lambda question: ask(client, question))
            await asyncio.sleep(1.0)
            left = (await _seen(address))["left"]
    late = {outcome.question: outcome.at for outcome in load.outcomes if outcome.status == 504}
    closed = {question: at for text, at in left if (question := _question_id(text)) is not None}
    lags = [1000 * (closed[question] - at) for question, at in late.items() if question in closed]
    taken = np.array([outcome.seconds for outcome in load.outcomes])
    return {
        "requests": requests,
        "timed_out": len(late),
        "other_errors": sum(outcome.status not in {200, 504} for outcome in load.outcomes),
        "within_5_3_s_percent": float(100 * np.mean(taken <= _DEADLINE + 0.3)),
        "slowest_s": float(taken.max()),
        "upstream_closed": len(lags),
        "upstream_closed_after_504_max_ms": max(lags, default=0.0),
    }


async def _overload(requests: int, clients: int, seconds: float, said: Sequence[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, model_server(seconds, kind="quoting") as address:
        said = (*said, f"SERVICE_CONCURRENCY={clients}")
        crowd = _TIMES_CAPACITY * clients
        async with service(Path(folder), address, *said) as running, running.client(crowd) as client:
            questions = fresh_questions(_WARM_UP + 2 * requests)
            await Load(clients=clients).run(questions[:_WARM_UP], lambda question: ask(client, question))
            alone = Load(clients=clients)
            await alone.run(questions[_WARM_UP : _WARM_UP + requests], lambda question: ask(client, question))
            crowded, refused = await _crowded(client, crowd, questions[_WARM_UP + requests :])
            memory = running.memory_mb()
    accepted = [outcome for outcome in crowded if outcome.status == 200]
    return {
        "capacity": clients,
        "clients": crowd,
        "accepted": len(accepted),
        "refused": len(refused),
        "other_errors": len(crowded) - len(accepted),
        "refused_p50_ms": _quantile(_ms(refused), 50),
        "refused_p99_ms": _quantile(_ms(refused), 99),
        "refused_max_ms": _quantile(_ms(refused), 100),
        "accepted_p50_ms": _quantile(_ms(accepted), 50),
        "accepted_p99_ms": _quantile(_ms(accepted), 99),
        "alone_p50_ms": _quantile(_ms(alone.outcomes), 50),
        "alone_p99_ms": _quantile(_ms(alone.outcomes), 99),
        "memory_mb": memory,
    }


async def _crowded(
    client: httpx.AsyncClient, crowd: int, questions: Sequence[Question]
) -> tuple[list[Response], list[Response]]:
    """The outcomes of the questions, and the refusals before them; refused clients retry as instructed."""
    refused: list[Response] = []
    load = Load(clients=crowd)

    async def persistent(question: Question) -> int:
        while True:
            tried = Load(clients=1)
            (outcome,) = await tried.run([question], lambda one: ask(client, one))
            if outcome.status != 503:
                accepted.append(outcome)
                return outcome.status
            refused.append(outcome)
            await asyncio.sleep(_SECONDS_BETWEEN_TRIES)

    accepted: list[Response] = []
    await load.run(questions, persistent)
    return accepted, refused


async def _seen(address: str) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        seen: dict[str, Any] = (await client.get(address.removesuffix("/v1") + "/seen")).json()
        return seen


def _question_id(prompt: str) -> str | None:
    """The question of a prompt, identified by its number from `fresh_questions`."""
    found = re.search(r"^Question: .*\((\d+)\)$", prompt, re.MULTILINE)
    return None if found is None else f"speed-{found[1]}"


def _ms(outcomes: Sequence[Response]) -> list[float]:
    return [1000 * outcome.seconds for outcome in outcomes]


def _quantile(values: Sequence[float], percent: float) -> float:
    return float(np.percentile(values, percent)) if values else 0.0


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else now - before

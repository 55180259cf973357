"""The overhead of loop, ledger and journals over the model calls that they make.

A loopback server in its own process answers each call after a fixed time. The benchmark runs against it, alternating
with a bare LangGraph graph that makes the same calls with ChatOpenAI, in one process.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypedDict

import typer

from meta_agent_rag.cli.shared.command import Json, print_json, say
from meta_agent_rag.datasets import Question, load_questions
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import model_server

from ..run.config import RunConfig, RunOptions
from ..run.display import Display
from ..run.execution import RunOutcome, execute
from ..run.folder import RunFolder

_TASK = "Answer the question in JSON, with the sentences that the answer rests on. " * 12

Times: TypeAlias = list[tuple[float, float]]
"""Wall and CPU seconds of runs."""


class _Prompts(TypedDict):
    prompts: list[list[tuple[str, str]]]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The workload of both sides: `n` questions, `concurrency` at once, against a server that takes `seconds`."""

    address: str
    n: int
    concurrency: int
    seconds: float


def orchestration(
    n: Annotated[int, typer.Option("--n", help="Questions.")] = 64,
    concurrency: Annotated[int, typer.Option(help="Questions in parallel.")] = 32,
    seconds: Annotated[float, typer.Option(help="Response time of the model.")] = 1.0,
    repeats: Annotated[int, typer.Option(help="Measured runs per side; medians are reported.")] = 3,
    json_: Json = False,
) -> None:
    """Wall and CPU time of a run against those of a bare LangGraph graph with the same calls."""
    with model_server(seconds) as address, tempfile.TemporaryDirectory() as folder:
        load = Workload(address=address, n=n, concurrency=concurrency, seconds=seconds)
        result = asyncio.run(measured(load, Path(folder), repeats))
    if json_:
        print_json(result)
        return
    say(f"{n} questions, {concurrency} in parallel, {result['calls_per_question']:g} calls each of {seconds:g} s")
    say(f"ideal {result['ideal_s']:.2f} s; ours {result['ours_s']:.2f} s; bare {result['bare_s']:.2f} s")
    say(f"ours / bare {result['ours_over_bare']:.3f} (medians of {repeats} runs per side, alternating)")
    say(f"CPU per call: ours {result['ours_cpu_ms_per_call']:.2f} ms, bare {result['bare_cpu_ms_per_call']:.2f} ms")


async def measured(load: Workload, folder: Path, repeats: int) -> dict[str, Any]:
    """Both sides, alternating, as medians over the repeats; units as in the names."""
    ours, bare = Times(), Times()
    questions = fresh_questions(load.n)
    per_question = await _ours(load, questions[:2], folder / "warm", Times()) // 2
    await _bare(load, questions[:2], per_question, Times())
    for repeat in range(repeats):
        calls = await _ours(load, questions, folder / str(repeat), ours)
        await _bare(load, questions, per_question, bare)
    (ours_s, ours_cpu), (bare_s, bare_cpu) = (map(statistics.median, zip(*side, strict=True)) for side in (ours, bare))
    return {
        "calls_per_question": calls / load.n,
        "ideal_s": calls * load.seconds / load.concurrency,
        "ours_s": ours_s,
        "bare_s": bare_s,
        "ours_over_bare": ours_s / bare_s,
        "ours_cpu_ms_per_call": 1000 * ours_cpu / calls,
        "bare_cpu_ms_per_call": 1000 * bare_cpu / calls,
    }


async def _ours(load: Workload, questions: Sequence[Question], folder: Path, times: Times) -> int:
    """One run of the benchmark; returns the number of calls that it made."""
    own: dict[str, Any] = {"max_metacognitive_rounds": 1, "monitor_policy": "agreement"}
    with _timed(times):
        outcome = await answered(load.address, questions, folder, concurrency=load.concurrency, **own)
    if failed := [row["error"] for row in outcome.rows if row["error"] is not None]:
        raise RuntimeError(failed[0])
    return sum(row["llm_calls"] for row in outcome.rows)


async def answered(
    address: str, questions: Sequence[Question], folder: Path, *, concurrency: int, **settings: Any
) -> RunOutcome:
    """Answer the questions with `metarag`, in a folder, with settings in addition to those that a loopback needs.

    Raises what stopped the run; failed answers are included.
    """
    chosen = Settings.load(
        (),
        llm_provider="deepseek",
        llm_base_url=address,
        deepseek_api_key="loopback",
        monitor_encoder="hash-64",
        marag_data_dir=folder / "data",
        **settings,
    )
    config = RunConfig(
        dataset="sample", mode="gold", methods=("metarag",), n=len(questions), concurrency=concurrency, settings=chosen
    )
    loaded, run = load_questions("sample"), RunFolder(folder / "run")
    outcome = await execute(config, RunOptions(), loaded, questions=questions, folder=run, display=Display("none"))
    if outcome.stopped_by is not None:
        raise outcome.stopped_by
    return outcome


def fresh_questions(n: int) -> list[Question]:
    """Distinct sample questions with their contexts, so that no cache answers any of them."""
    known = load_questions("sample").questions
    drawn = [known[number % len(known)] for number in range(n)]
    return [
        replace(question, id=f"speed-{number}", text=f"{question.text} ({number})")
        for number, question in enumerate(drawn)
    ]


async def _bare(load: Workload, questions: Sequence[Question], calls: int, times: Times) -> None:
    """The same calls, with prompts of about the size of ours, through a graph of one node per call and no more."""
    import openai
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, StateGraph
    from pydantic import SecretStr

    client = openai.DefaultAsyncHttpxClient(timeout=None)
    key = SecretStr("loopback")
    model = ChatOpenAI(model="bare", base_url=load.address, api_key=key, max_retries=0, http_async_client=client)
    graph = StateGraph(_Prompts)
    for number in range(calls):

        async def node(state: _Prompts, number: int = number) -> dict[str, Any]:
            await model.ainvoke(state["prompts"][number], max_tokens=500, temperature=0.0)
            return {}

        graph.add_node(f"call{number}", node)
        graph.add_edge(f"call{number - 1}" if number else START, f"call{number}")
    compiled, gate = graph.compile(), asyncio.Semaphore(load.concurrency)

    async def one(question: Question) -> None:
        shown = "\n".join(f"{paragraph.title}: {paragraph.text}" for paragraph in question.paragraphs)
        asked = [f"{shown}\n{question.text}\n{_TASK}{call}" for call in range(calls)]
        async with gate:
            await compiled.ainvoke({"prompts": [[("system", "You answer questions."), ("user", one)] for one in asked]})

    with _timed(times):
        await asyncio.gather(*(one(question) for question in questions))
    await client.aclose()


@contextmanager
def _timed(times: Times) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    times.append((time.perf_counter() - wall, time.process_time() - cpu))

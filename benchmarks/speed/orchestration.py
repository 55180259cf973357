"""The overhead of loop, ledger and journals over the model calls that they make.

A loopback server in its own process answers each call after a fixed time. The benchmark runs against it, alternating
with a bare LangGraph graph that makes the same calls with ChatOpenAI, in one process.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict

import httpx
import typer

from meta_agent_rag.cli.shared.command import Json, print_json, say
from meta_agent_rag.datasets import Question, load_questions
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import model_server

from ..run.config import RunConfig, RunOptions
from ..run.display import Silent
from ..run.execution import RunOutcome, execute
from ..run.folder import RunFolder

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_TASK = "Answer the question in JSON, with the sentences that the answer rests on. " * 12

Times: TypeAlias = list[tuple[float, float]]
"""Wall and CPU seconds of runs."""
_Prompt: TypeAlias = list[tuple[str, str]]


class _Prompts(TypedDict):
    prompts: list[_Prompt]


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
    times: dict[str, Times] = {"ours": [], "bare": [], "idle": []}
    at_once: dict[str, list[int]] = {"ours": [], "bare": []}
    questions = fresh_questions(load.n)
    per_question = await _ours(load, questions[:2], folder / "warm", []) // 2
    await _bare(load, questions[:2], per_question, [])
    await _most_at_once(load)
    for repeat in range(repeats):
        calls = await _ours(load, questions, folder / str(repeat), times["ours"])
        at_once["ours"].append(await _most_at_once(load))
        await _bare(load, questions, per_question, times["bare"])
        at_once["bare"].append(await _most_at_once(load))
        with _timed(times["idle"]):
            await _all(_chain(per_question, _nothing), questions, load.concurrency)
    ideal = calls * load.seconds / load.concurrency
    wall = {side: statistics.median(found for found, _ in runs) for side, runs in times.items()}
    cpu = {side: 1000 * statistics.median(found for _, found in runs) / calls for side, runs in times.items()}
    return {
        "questions": load.n,
        "concurrency": load.concurrency,
        "calls_per_question": calls / load.n,
        "ideal_s": ideal,
        "ours_s": wall["ours"],
        "bare_s": wall["bare"],
        "ours_over_ideal": wall["ours"] / ideal,
        "ours_over_bare": wall["ours"] / wall["bare"],
        **{f"{side}_most_at_once": int(statistics.median(counts)) for side, counts in at_once.items()},
        "ours_cpu_ms_per_call": cpu["ours"],
        "bare_cpu_ms_per_call": cpu["bare"],
        "langgraph_cpu_ms_per_node": cpu["idle"],
        "repeats": repeats,
    }


async def _most_at_once(load: Workload) -> int:
    """The maximum number of calls in progress at the server since it was last queried."""
    async with httpx.AsyncClient(trust_env=False) as client:
        seen = await client.get(load.address.removesuffix("/v1") + "/seen")
    return int(seen.json()["most_at_once"])


async def _ours(load: Workload, questions: Sequence[Question], folder: Path, times: Times) -> int:
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
        dataset="sample",
        mode="gold",
        methods=("metarag",),
        n=len(questions),
        limit=None,
        seed=42,
        data_file=None,
        aliases_file=None,
        corpus=None,
        concurrency=concurrency,
        settings=chosen,
    )
    outcome = await execute(
        config,
        RunOptions(),
        load_questions("sample"),
        questions=questions,
        folder=RunFolder(folder / "run"),
        display=Silent(),
    )
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
    """The same number of calls through a graph with ChatOpenAI and nothing else."""
    async with _endpoint(load.address) as called:
        graph = _chain(calls, called)
        with _timed(times):
            await _all(graph, questions, load.concurrency)


@asynccontextmanager
async def _endpoint(address: str) -> AsyncIterator[Callable[[_Prompt], Awaitable[None]]]:
    """A call of the endpoint with ChatOpenAI."""
    import openai
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    client = openai.DefaultAsyncHttpxClient(timeout=None)
    key = SecretStr("loopback")
    model = ChatOpenAI(model="bare", base_url=address, api_key=key, max_retries=0, http_async_client=client)

    async def called(prompt: _Prompt) -> None:
        await model.ainvoke(prompt, max_tokens=500, temperature=0.0)

    yield called
    await client.aclose()


async def _nothing(_: _Prompt) -> None:
    """Instead of a call: what is left is LangGraph's own work."""


def _chain(calls: int, called: Callable[[_Prompt], Awaitable[None]]) -> "CompiledStateGraph[_Prompts]":
    """A graph with one node per call, in sequence."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(_Prompts)
    names = [f"call{number}" for number in range(calls)]
    for number, name in enumerate(names):

        async def node(state: _Prompts, number: int = number) -> dict[str, Any]:
            await called(state["prompts"][number])
            return {}

        graph.add_node(name, node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph.compile()


async def _all(graph: "CompiledStateGraph[_Prompts]", questions: Sequence[Question], concurrency: int) -> None:
    """Run the graph on every question, with prompts of about the size of ours."""
    gate = asyncio.Semaphore(concurrency)
    calls = len(graph.nodes) - 1  # without the start

    async def one(question: Question) -> None:
        shown = "\n".join(f"{paragraph.title}: {paragraph.text}" for paragraph in question.paragraphs)
        asked = [f"{shown}\n{question.text}\n{_TASK}{call}" for call in range(calls)]
        async with gate:
            await graph.ainvoke({"prompts": [[("system", "You answer questions."), ("user", one)] for one in asked]})

    await asyncio.gather(*(one(question) for question in questions))


@contextmanager
def _timed(times: Times) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    times.append((time.perf_counter() - wall, time.process_time() - cpu))

"""The graph in somebody else's hands: a node, a subgraph, or served by LangGraph.

What a question needs is opened on first use, once for each event loop, and closed when that loop shuts down.
"""

import asyncio
import atexit
import contextvars
import threading
from collections.abc import Callable, Coroutine, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from langchain_core.runnables import RunnableConfig

from ..errors import InputError
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.open_retriever import open_retriever
from ..settings import Settings
from .context import Context, Task
from .deficits import DeficitRegistry, discover_deficits
from .engine import as_retriever, open_engine
from .state import State
from .wiring import wired

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_T = TypeVar("_T")
_CLOSING_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a run of the graph uses, for callers without an engine; every field may be left out.

    - `corpus`: the name of the corpus to search; by default the sample.
    - `retriever`: searches instead of a corpus: any retriever of LangChain's or of this package.
    - `evidence`: passages, or documents of LangChain's, to answer from.
    - `model`: a chat model of LangChain's; by default what the settings choose.
    - `settings`: by default those of the environment.
    - `grounded`: answer from the evidence alone, or say NOT FOUND.
    """

    corpus: str | None = None
    retriever: Any = None
    evidence: Any = None
    model: Any = None
    settings: Any = None
    grounded: bool | None = None

    def updated(self, *given: object) -> "Resources":
        """These, overridden by what mappings or objects give under the same names."""
        values = {field.name: getattr(self, field.name) for field in fields(Resources)}
        for source in given:
            for one in fields(Resources):
                value = source.get(one.name) if isinstance(source, Mapping) else getattr(source, one.name, None)
                if value is not None:
                    values[one.name] = value
        return Resources(**values)


def build_graph(
    deficits: DeficitRegistry | None = None,
    *,
    corpus: str | None = None,
    retriever: object = None,
    evidence: object = None,
    model: object = None,
    settings: object = None,
    grounded: bool | None = None,
    **compile_options: Any,
) -> "CompiledStateGraph[State, Any, Any, Any]":
    """The compiled graph: `retrieve -> write -> diagnose -> [remediate -> write]* -> END`.

    It needs nothing but `{"question": ...}`; `answer`, `short_answer` and `rounds` are in its output. What it uses is
    given here, with a run as `context`, or in its `configurable`, as the fields of `Resources`, in ascending order of
    precedence; the rest is opened on first use. Options (checkpointer, interrupts) go to its `compile`.
    `max_metacognitive_rounds` bounds the loop.
    """
    resources = Resources(
        corpus=corpus, retriever=retriever, evidence=evidence, model=model, settings=settings, grounded=grounded
    )
    known = deficits or discover_deficits(getattr(settings or Settings.load(), "deficits_dir", None))

    async def find(state: State, config: RunnableConfig, given: Any) -> Context:
        if isinstance(given, Context):
            return given
        return await _context(state.get("question"), resources.updated(given, config.get("configurable", {})), known)

    return wired(known, schema=Resources, find=find, wait=_in_background, **compile_options)


async def _context(question: object, resources: Resources, deficits: DeficitRegistry) -> Context:
    """The context for a question asked without an engine. Raises `InputError` and whatever opening may raise."""
    if not isinstance(question, str) or not question.strip():
        raise InputError('The graph was given no question; call it with {"question": "..."}.')
    chosen, model = resources.settings, resources.model
    engine = await _held(("engine", id(chosen), id(model)), lambda: open_engine(chosen or Settings.load(), model=model))
    retriever: Any = resources.retriever
    if retriever is None and resources.evidence is None:
        settings, corpus = engine.settings, resources.corpus or SAMPLE
        retriever = await _held(("corpus", id(chosen), corpus), lambda: open_retriever(settings, corpus))
    task = Task(
        question=question,
        evidence=resources.evidence,
        retriever=None if retriever is None else as_retriever(retriever, screening=engine.settings.screening),
        grounded=bool(resources.grounded),
        method="langgraph",
    )
    return replace(engine.begin(task)[1], deficits=deficits)


_Key: TypeAlias = tuple[asyncio.AbstractEventLoop, Hashable]
_HELD: dict[_Key, tuple[asyncio.Future[Any], asyncio.Task[None]]] = {}


async def _held(name: Hashable, opened: Callable[[], AbstractAsyncContextManager[_T]]) -> _T:
    """What a context manager gives, opened once for each event loop by a task that the loop's end cancels."""
    loop = asyncio.get_running_loop()
    key: _Key = (loop, name)
    if key not in _HELD:
        given: asyncio.Future[_T] = loop.create_future()
        holding = loop.create_task(_hold(opened, given), context=contextvars.Context())
        _HELD[key] = given, holding

        def ended(task: asyncio.Task[None]) -> None:
            del _HELD[key]
            if not task.cancelled() and (error := task.exception()) is not None and not given.done():
                given.set_exception(error)

        holding.add_done_callback(ended)
    value: _T = await asyncio.shield(_HELD[key][0])
    return value


async def _hold(opened: Callable[[], AbstractAsyncContextManager[_T]], given: asyncio.Future[_T]) -> None:
    async with opened() as value:
        given.set_result(value)
        await asyncio.Event().wait()


@cache
def _background() -> asyncio.AbstractEventLoop:
    """An event loop that runs in a thread until the process ends; what it opened is closed then."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="metarag", daemon=True).start()
    atexit.register(lambda: asyncio.run_coroutine_threadsafe(_closed(), loop).result(_CLOSING_SECONDS))
    return loop


async def _closed() -> None:
    own = [task for (loop, _), (_, task) in _HELD.items() if loop is asyncio.get_running_loop()]
    for task in own:
        task.cancel()
    await asyncio.gather(*own, return_exceptions=True)


def _in_background(work: Coroutine[Any, Any, _T]) -> _T:
    """What a coroutine returns, for callers without an event loop; always on the same loop, with its open clients."""
    future = asyncio.run_coroutine_threadsafe(work, _background())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # an interrupted caller pays for no further call
        raise

"""The loop's wiring, and nothing else."""

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph._internal._runnable import RunnableCallable  # as in langgraph.prebuilt: a node for both kinds of runs
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict  # needed for the schemas that Studio shows

from .context import Context
from .deficits import DeficitRegistry
from .diagnose import diagnose
from .remediate import remediate
from .retrieve import retrieve
from .state import State, Update, afresh, restored
from .write import write

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_STOP = "stop"
Node: TypeAlias = Callable[[State, Runtime[Context]], Awaitable[Update]]
FindContext: TypeAlias = Callable[[State, RunnableConfig, Any], Awaitable[Context]]
"""Maps the state, the configuration and the `context` of a run to what its nodes use."""
Wait: TypeAlias = Callable[[Coroutine[Any, Any, Update]], Update]


class GraphInput(TypedDict):
    """The graph's input."""

    question: str


def wired(
    deficits: DeficitRegistry,
    *,
    schema: Any = Context,
    find: FindContext | None = None,
    wait: Wait | None = None,
    **compile_options: Any,
) -> "CompiledStateGraph[State, Any, Any, Any]":
    """The compiled graph: `retrieve -> write -> diagnose -> [remediate -> write]* -> END`.

    Every deficit is a node of its own that runs `remediate`, so that drawings and traces show which one was repaired.
    A run's `context` is the nodes' own, unless it is to be found (`find`); `wait` serves synchronous runs.
    """
    graph: StateGraph[State, Any, GraphInput, State] = StateGraph(
        State, context_schema=schema, input_schema=GraphInput, output_schema=State
    )
    nodes: dict[str, Node] = {"retrieve": retrieve, "write": write, "diagnose": diagnose}
    for name, node in (nodes | dict.fromkeys(deficits.names, remediate)).items():
        graph.add_node(name, _runnable(name, node, find, wait), input_schema=State)
    for name in deficits.names:
        graph.add_edge(name, "write")
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "write")
    graph.add_edge("write", "diagnose")
    graph.add_conditional_edges("diagnose", _route, {**{name: name for name in deficits.names}, _STOP: END})
    return graph.compile(name="metarag", **compile_options)


def _runnable(name: str, node: Node, find: FindContext | None, wait: Wait | None) -> RunnableCallable:
    """The node with its context; it records the model calls that it makes in the state."""

    async def run(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> Update:
        context = runtime.context if find is None else await find(state, config, runtime.context)
        if "thread_id" in config.get("configurable", {}):
            state = restored(state)
        anew = name == "retrieve" and any(value for key, value in state.items() if key != "question")
        if anew:  # a checkpointer has kept the thread's last question
            state = {"question": state["question"]}
        update = await node(state, runtime.override(context=context))
        made = Counter(context.model.rows) - Counter(state.get("calls", ()))  # rows from the cache may be equal
        update = {**update, "calls": tuple(made.elements())}
        return afresh(update) if anew else update

    def run_and_wait(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> Update:
        assert wait is not None
        return wait(run(state, config, runtime))

    return RunnableCallable(run_and_wait if wait else None, run, name=name, trace=False)


def _route(state: State) -> str:
    """The deficit to remedy, or stop."""
    diagnosis = state["rounds"][-1].diagnosis
    if state.get("stop_reason") or diagnosis is None:
        return _STOP
    return diagnosis.deficit

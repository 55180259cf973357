"""The loop's wiring, and nothing else."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph._internal._runnable import RunnableCallable  # as in langgraph.prebuilt: a node for both kinds of runs
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict  # needed for the schemas that Studio shows

from .context import Context
from .deficits import DeficitRegistry, discover_deficits
from .diagnose import diagnose
from .opening import Resources, context_of, in_background
from .remediate import remediate
from .retrieve import retrieve
from .state import State, Update, restored
from .write import write

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_STOP = "stop"
Node: TypeAlias = Callable[[State, Runtime[Context]], Awaitable[Update]]


class GraphInput(TypedDict):
    """The graph's input."""

    question: str


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

    Every deficit is a node of its own that runs `remediate`, so that drawings and traces show which one was repaired;
    each node runs within a span. `max_metacognitive_rounds` bounds the loop.
    """
    given = {"corpus": corpus, "retriever": retriever, "evidence": evidence, "model": model, "settings": settings}
    resources = Resources().updated({**given, "grounded": grounded})
    deficits = deficits or discover_deficits(getattr(settings, "deficits_dir", None))
    graph: StateGraph[State, Resources, GraphInput, State] = StateGraph(
        State, context_schema=Resources, input_schema=GraphInput, output_schema=State
    )
    nodes: dict[str, Node] = {"retrieve": retrieve, "write": write, "diagnose": diagnose}
    for name, node in (nodes | dict.fromkeys(deficits.names, remediate)).items():
        graph.add_node(name, _runnable(name, node, resources, deficits), input_schema=State)
    for name in deficits.names:
        graph.add_edge(name, "write")
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "write")
    graph.add_edge("write", "diagnose")
    graph.add_conditional_edges("diagnose", _route, {**{name: name for name in deficits.names}, _STOP: END})
    return graph.compile(name="metarag", **compile_options)


def _runnable(name: str, node: Node, resources: Resources, deficits: DeficitRegistry) -> RunnableCallable:
    """The node with its context: an engine's own, or one opened from the run's resources.

    It records the model calls that it makes in the state. A synchronous run waits for it in a background thread.
    """

    async def run(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> Update:
        configurable: Mapping[str, Any] = config.get("configurable", {})
        context = runtime.context
        if not isinstance(context, Context):
            context = await context_of(
                state.get("question"), resources.updated(context, configurable), deficits=deficits
            )
        if "thread_id" in configurable:
            state = restored(state)
        update = await node(state, runtime.override(context=context))
        known = state.get("calls", ())
        return {**update, "calls": tuple(row for row in context.model.rows if row not in known)}

    def run_in_background(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> Update:
        return in_background(run(state, config, runtime))

    return RunnableCallable(run_in_background, run, name=name, trace=False)


def _route(state: State) -> str:
    """The deficit to remedy, or stop."""
    diagnosis = state["rounds"][-1].diagnosis
    if state.get("stop_reason") or diagnosis is None:
        return _STOP
    return diagnosis.deficit

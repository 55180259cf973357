"""The loop's wiring, and nothing else."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from .context import Context
from .deficits import DeficitRegistry, discover_deficits
from .diagnose import diagnose
from .remediate import remediate
from .retrieve import retrieve
from .state import State, Update
from .write import write

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_STOP = "stop"


class Node(Protocol):
    """A function that runs as a node."""

    def __call__(self, state: State, runtime: Runtime[Context]) -> Awaitable[Update]: ...


@dataclass(frozen=True, kw_only=True)
class GraphInterface:
    """The graph's interface for a caller that cannot pass a `Context`, such as a server.

    `context_schema` and `input_schema` define the caller's input; `wrap` gives a node the `Context` made from it.
    """

    context_schema: type[Any]
    input_schema: type[Any]
    wrap: Callable[[Node], Node]


def build_graph(
    deficits: DeficitRegistry | None = None, *, interface: GraphInterface | None = None, **compile_options: Any
) -> "CompiledStateGraph[State, Context]":
    """The compiled graph: `retrieve -> write -> diagnose -> [remediate -> write]* -> END`.

    Every deficit is a node of its own that runs `remediate`, so that drawings and traces show
    which one was repaired. Options (checkpointer, interrupts) go to its `compile`.
    Run it with a `Context`, or the input that `interface` defines; `max_metacognitive_rounds` bounds the loop.
    """
    deficits = deficits or discover_deficits()
    interface = interface or GraphInterface(context_schema=Context, input_schema=State, wrap=lambda node: node)
    graph: StateGraph[State, Any, Any, State] = StateGraph(
        State, context_schema=interface.context_schema, input_schema=interface.input_schema
    )
    nodes: dict[str, Node] = {"retrieve": retrieve, "write": write, "diagnose": diagnose}
    for name, node in (nodes | dict.fromkeys(deficits.names, remediate)).items():
        graph.add_node(name, interface.wrap(node))
    for name in deficits.names:
        graph.add_edge(name, "write")
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "write")
    graph.add_edge("write", "diagnose")
    graph.add_conditional_edges("diagnose", _route, {**{name: name for name in deficits.names}, _STOP: END})
    return graph.compile(**compile_options)


def _route(state: State) -> str:
    """The deficit to remedy, or stop."""
    diagnosis = state["rounds"][-1].diagnosis
    if state.get("stop_reason") or diagnosis is None:
        return _STOP
    return diagnosis.deficit

"""The loop's wiring, and nothing else."""

from typing import TYPE_CHECKING, Any

from langgraph.graph import END, START, StateGraph

from .context import Context
from .deficits import DeficitRegistry, discover_deficits
from .diagnose import diagnose
from .remediate import remediate
from .retrieve import retrieve
from .state import State
from .write import write

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_STOP = "stop"


def build_graph(
    deficits: DeficitRegistry | None = None, **compile_options: Any
) -> "CompiledStateGraph[State, Context]":
    """The compiled graph: `retrieve -> write -> diagnose -> [remediate -> write]* -> END`.

    Every deficit is a node of its own name that runs `remediate`, so that a drawing and a trace show
    which one was repaired. Options (checkpointer, interrupts) go to LangGraph's `compile`. Run it with
    a `Context`; `max_metacognitive_rounds` bounds the loop.
    """
    deficits = deficits or discover_deficits()
    graph = StateGraph(State, context_schema=Context)
    for node in (retrieve, write, diagnose):
        graph.add_node(node.__name__, node)
    for name in deficits.names:
        graph.add_node(name, remediate)
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

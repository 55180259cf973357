"""A span around every node of the graph."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from langgraph.runtime import Runtime

from .. import telemetry
from .context import Context
from .state import State, Update

Node: TypeAlias = Callable[[State, Runtime[Context]], Awaitable[Update]]


def within_span(name: str, node: Node) -> Node:
    """The node, within a span that bears its name in the graph."""

    async def spanned(state: State, runtime: Runtime[Context]) -> Update:
        about = {telemetry.NODE: name, telemetry.ROUND: len(state.get("rounds", ()))}
        with telemetry.span(f"node {name}", about):
            return await node(state, runtime)

    return spanned

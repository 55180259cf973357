"""A span around every node of the graph."""

from collections.abc import Awaitable
from typing import Protocol

from langgraph.runtime import Runtime

from .. import telemetry
from ..telemetry import Value
from .context import Context
from .state import State, Update


class Node(Protocol):
    """What runs as a node."""

    def __call__(self, state: State, runtime: Runtime[Context]) -> Awaitable[Update]: ...


def within_span(name: str, node: Node) -> Node:
    """The node, within a span that bears its name in the graph."""

    async def spanned(state: State, runtime: Runtime[Context]) -> Update:
        about: dict[str, Value] = {telemetry.NODE: name, telemetry.ROUND: len(state.get("rounds", ()))}
        with telemetry.span(f"node {name}", about):
            return await node(state, runtime)

    return spanned

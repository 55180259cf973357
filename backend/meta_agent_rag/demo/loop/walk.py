"""One visitor's walk through the loop: to the end or node by node, and it can be stopped and resumed at any time."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ...agent.context import Context, Task
from ...agent.engine import Answer, Engine
from ...agent.graph import build_graph
from ...agent.state import Draft, Packing, RepairPlan, Round, State
from ...errors import MetaRagError
from ...llm.ledger import LedgerRow
from ...retrieval.passage import Found

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_LOG = logging.getLogger(__name__)

Status = Literal["ready", "working", "paused", "stopped", "failed", "done"]


@dataclass(frozen=True, kw_only=True)
class Sight:
    """The display at one moment.

    `node` is running or, if the walk is paused, the next one. `visited` are the nodes that have run, in
    order. `monitored` is the current round once the monitor has judged it and the critic is asked.
    `fault` is a sentence on what went wrong, `seconds` the time that the walk has been running.
    """

    question: str
    state: State
    status: Status = "ready"
    node: str | None = None
    visited: tuple[str, ...] = ()
    monitored: Round | None = None
    rows: tuple[LedgerRow, ...] = ()
    answer: Answer | None = None
    fault: str = ""
    seconds: float = 0.0

    @property
    def rounds(self) -> tuple[Round, ...]:
        """All completed rounds."""
        return self.state.get("rounds", ())

    @property
    def evidence(self) -> dict[str, Found]:
        """All evidence so far by passage id, in order of arrival."""
        return {found.passage.id: found for found in self.state.get("evidence", ())}

    @property
    def plan(self) -> RepairPlan | None:
        """The plan of the current round, once made."""
        plan = self.state.get("plan")
        return None if self.rounds and plan is self.rounds[-1].plan else plan

    @property
    def draft(self) -> Draft | None:
        """The draft of the current round, once written."""
        draft = self.state.get("draft")
        return None if self.rounds and draft is self.rounds[-1].draft else draft

    @property
    def packing(self) -> Packing:
        """The packing of the current draft's prompt."""
        return self.state.get("packing") or Packing()


@dataclass(kw_only=True)
class Walk:
    """A question's run through the graph, with its own checkpointer."""

    engine: Engine
    context: Context
    sight: Sight
    _graph: "CompiledStateGraph[State, Context]" = field(repr=False)

    @classmethod
    def begin(cls, engine: Engine, task: Task) -> "Walk":
        """A walk that has not started. Raises `InputError`."""
        state, context = engine.begin(replace(task, method="demo"))
        graph = build_graph(engine.deficits, checkpointer=_checkpointer())
        return cls(engine=engine, context=context, sight=Sight(question=task.question, state=state), _graph=graph)

    async def advance(self, show: Callable[[Sight], None], *, steps: bool) -> None:
        """Walk to the end or, with `steps`, through one node; `show` is called whenever there is more to show.

        Cancelling it stops the model's call; completed nodes are kept, and the next `advance` continues from there.
        Errors are shown, not raised.
        """
        if self.sight.status == "done":
            return
        started, before = time.perf_counter(), self.sight.seconds

        def change(**changes: Any) -> None:
            seconds = before + time.perf_counter() - started
            self.sight = replace(self.sight, seconds=seconds, rows=tuple(self.context.model.rows), **changes)
            show(self.sight)

        try:
            change(status="working", fault="")
            await self._stream(change, steps=steps)
            self._settle(change, await self._next())
        except asyncio.CancelledError:
            change(status="stopped", monitored=None)
            raise
        except MetaRagError as fault:
            change(status="failed", fault=str(fault), monitored=None)
        except Exception as fault:  # noqa: BLE001  # the visitor is informed, and the log has the details
            _LOG.exception("The demo failed over %r.", self.sight.question)
            change(status="failed", fault=unexpected(fault), monitored=None)

    async def _stream(self, change: Callable[..., None], *, steps: bool) -> None:
        # a first start that was cancelled before its checkpoint starts over
        begun = (await self._graph.aget_state(_THREAD)).next
        parts = self._graph.astream(
            None if begun else self.sight.state,
            _THREAD,
            context=self.context,
            stream_mode=["tasks", "custom", "values"],
            interrupt_after="*" if steps else None,
            durability="sync",
            version="v2",
        )
        async for part in parts:
            data: Any = part["data"]
            if part["type"] == "custom":
                change(monitored=data)
            elif part["type"] == "values":
                change(state=data, monitored=None)
            elif "input" in data:  # a node that starts; one that ends has a result instead
                change(node=data["name"])
            elif not data.get("error"):
                change(visited=(*self.sight.visited, data["name"]))

    async def _next(self) -> str | None:
        waiting = (await self._graph.aget_state(_THREAD)).next
        return waiting[0] if waiting else None

    def _settle(self, change: Callable[..., None], waiting: str | None) -> None:
        if waiting is not None:
            change(status="paused", node=waiting)
        else:
            change(status="done", node=None, answer=self.engine.answered(self.sight.state, self.context))


def unexpected(fault: Exception) -> str:
    """The message to a visitor about an unexpected fault."""
    return f"Something unexpected happened ({type(fault).__name__}); see the server's log."


_THREAD: Any = {"configurable": {"thread_id": "walk"}}


def _checkpointer() -> Any:
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver(serde=_AsItIs())


class _AsItIs:
    """Keeps the state's values as they are: they are immutable, and serialisation would turn tuples into lists."""

    def dumps_typed(self, obj: Any) -> Any:
        """See `SerializerProtocol`."""
        return "value", obj

    def loads_typed(self, data: Any) -> Any:
        """See `SerializerProtocol`."""
        return data[1]

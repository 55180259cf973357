"""One visitor's run of the loop, whose steps can be stopped and resumed at any time."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ..agent.context import Context, Task
from ..agent.engine import Answer, Engine
from ..agent.graph import build_graph
from ..agent.state import Draft, Packing, RepairPlan, Round, State
from ..errors import MetaRagError
from ..llm.ledger import LedgerRow
from ..retrieval.passage import Found
from .vocabulary import unexpected

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_LOG = logging.getLogger(__name__)

Status = Literal["ready", "working", "paused", "stopped", "failed", "done"]


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A pass through write and diagnose, as far as it has come; `ids` are those of its evidence."""

    plan: RepairPlan | None
    draft: Draft | None
    packing: Packing
    judged: Round | None
    ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LoopView:
    """What there is to show of a run at one moment; a recorded answer is one that is done.

    `node` is running or, if the run is paused, the next one. `visited` are the nodes that have run, in order.
    `monitored` is the current round once the monitor has judged it and the critic is asked. `fault` is a sentence on
    what went wrong, `seconds` the time that the run has taken.
    """

    question: str = ""
    state: State = field(default_factory=State)
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
    def passes(self) -> tuple[Pass, ...]:
        """The completed rounds, and the current one unless the run is done."""
        done = tuple(
            Pass(plan=one.plan, draft=one.draft, packing=one.packing, judged=one, ids=one.evidence_ids)
            for one in self.rounds
        )
        if self.status == "done":
            return done
        draft = self.state.get("draft")
        current = Pass(
            plan=self.plan,
            draft=None if done and draft is done[-1].draft else draft,
            packing=self.state.get("packing") or Packing(),
            judged=self.monitored,
            ids=tuple(self.evidence),
        )
        return (*done, current)

    @property
    def doubted(self) -> bool:
        """The monitor is not satisfied with the current draft, and the critic is asked."""
        return self.monitored is not None and not self.monitored.satisfied


@dataclass(kw_only=True)
class LoopStepper:
    """A question's run through the graph, with its own checkpointer."""

    engine: Engine
    context: Context
    view: LoopView
    _graph: "CompiledStateGraph[State, Context]" = field(repr=False)

    @classmethod
    def begin(cls, engine: Engine, task: Task) -> "LoopStepper":
        """A run that has not started. Raises `InputError`."""
        from langgraph.checkpoint.memory import InMemorySaver

        state, context = engine.begin(replace(task, method="demo"))
        graph = build_graph(engine.deficits, checkpointer=InMemorySaver(serde=_AsItIs()))
        return cls(engine=engine, context=context, view=LoopView(question=task.question, state=state), _graph=graph)

    async def advance(self, show: Callable[[], None], *, steps: bool) -> None:
        """Run to the end or, with `steps`, through one node; `show` is called whenever the `view` has changed.

        Cancelling it stops the model's call; completed nodes are kept, and the next `advance` continues from there.
        Errors are shown, not raised.
        """
        if self.view.status == "done":
            return
        started, before = time.perf_counter(), self.view.seconds

        def change(**changes: Any) -> None:
            seconds = before + time.perf_counter() - started
            self.view = replace(self.view, seconds=seconds, rows=tuple(self.context.model.rows), **changes)
            show()

        try:
            change(status="working", fault="")
            await self._stream(change, steps=steps)
            if waiting := (await self._graph.aget_state(_THREAD)).next:
                change(status="paused", node=waiting[0])
            else:
                change(status="done", node=None, answer=self.engine.answered(self.view.state, self.context))
        except asyncio.CancelledError:
            change(status="stopped", monitored=None)
            raise
        except Exception as fault:  # noqa: BLE001  # the visitor is informed, and the log has the details
            if not isinstance(fault, MetaRagError):
                _LOG.exception("The demo failed over %r.", self.view.question)
            change(status="failed", fault=unexpected(fault), monitored=None)

    async def _stream(self, change: Callable[..., None], *, steps: bool) -> None:
        # a first start that was cancelled before its checkpoint starts over
        begun = (await self._graph.aget_state(_THREAD)).next
        parts = self._graph.astream(
            None if begun else self.view.state,
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
                change(visited=(*self.view.visited, data["name"]))


_THREAD: Any = {"configurable": {"thread_id": "walk"}}


class _AsItIs:
    """Keeps the state's values as they are: they are immutable, and serialisation would turn tuples into lists."""

    def dumps_typed(self, obj: Any) -> Any:
        """See `SerializerProtocol`."""
        return "value", obj

    def loads_typed(self, data: Any) -> Any:
        """See `SerializerProtocol`."""
        return data[1]

"""One visitor's run of the loop: its configuration, and its steps, which can be stopped and resumed at any time."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from ..agent.context import Context, Task
from ..agent.engine import Answer, Engine
from ..agent.graph import build_graph
from ..agent.monitor import POLICIES
from ..agent.state import Draft, Packing, RepairPlan, Round, State
from ..datasets import Question
from ..errors import InputError, MetaRagError
from ..llm.ledger import LedgerRow
from ..retrieval.hybrid import HybridRetriever, Retriever
from ..retrieval.passage import Found, passages_of
from ..settings import Settings
from .workbench import QuestionSet, Workbench

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_LOG = logging.getLogger(__name__)

POLICY_NAMES = {
    "agreement": "the two short answers agree",
    "paper": "their cosine reaches the threshold",
    "calibrated": "a fitted probability of being correct",
}


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """The settings of a run that a visitor may change; the fields are in the order of the switches."""

    policy: str
    threshold: float
    rounds: int
    convergence: float
    top_k: int
    fusion: Literal["rrf", "blend"]
    links: bool
    provider: str

    @classmethod
    def of(cls, settings: Settings, provider: str) -> "WhatIf":
        """The switches set as in the settings."""
        return cls(
            policy=settings.monitor_policy,
            threshold=settings.monitor_similarity_threshold,
            rounds=settings.max_metacognitive_rounds,
            convergence=settings.convergence_threshold,
            top_k=settings.retrieval_top_k,
            fusion=settings.fusion,
            links=settings.links,
            provider=provider,
        )

    def engine(self, engine: Engine) -> Engine:
        """The engine with this configuration."""
        changed = {
            "monitor_policy": self.policy,
            "monitor_similarity_threshold": self.threshold,
            "max_metacognitive_rounds": self.rounds,
            "convergence_threshold": self.convergence,
            "retrieval_top_k": self.top_k,
            "fusion": self.fusion,
            "links": self.links,
        }
        return replace(engine, settings=engine.settings.model_copy(update=changed))

    def retriever(self, retriever: Retriever) -> Retriever:
        """The retriever with this configuration; one that is not hybrid has no such switches."""
        if not isinstance(retriever, HybridRetriever):
            return retriever
        return replace(retriever, fusion=self.fusion, links=self.links)

    def differences(self, other: "WhatIf") -> tuple[str, ...]:
        """The differences from another one in words; empty if they are the same."""
        return tuple(
            f"{_NAMES[one.name]}: {_shown(getattr(self, one.name))}"
            for one in fields(self)
            if getattr(self, one.name) != getattr(other, one.name)
        )


_NAMES = {
    "policy": "monitor policy",
    "threshold": "cosine threshold",
    "rounds": "maximum repairs",
    "convergence": "convergence",
    "top_k": "passages per search",
    "fusion": "fusion",
    "links": "links",
    "provider": "provider",
}


def _shown(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def switches(workbench: Workbench, start: WhatIf, *, name: str) -> list[Any]:
    """Controls in the order of the fields of `WhatIf`; `name` is the prefix of their ids, which must be unique."""
    import gradio as gr

    def id_(field: str) -> str:
        return f"{name}-{field}"

    policies = [known for known in POLICIES if known != "calibrated" or workbench.settings.monitor_calibration]
    return [
        gr.Dropdown(
            [(f"{known}: {POLICY_NAMES.get(known, known)}", known) for known in sorted(policies)],
            value=start.policy,
            label="The monitor is satisfied if",
            elem_id=id_("policy"),
        ),
        gr.Slider(
            -1.0,
            1.0,
            value=start.threshold,
            step=0.05,
            label="Cosine threshold",
            info="Applies to the policy “paper”.",
            elem_id=id_("threshold"),
        ),
        gr.Slider(
            0,
            10,
            value=start.rounds,
            step=1,
            label="Maximum repairs",
            info="0: the first draft is final.",
            elem_id=id_("rounds"),
        ),
        gr.Slider(
            0.0,
            1.0,
            value=start.convergence,
            step=0.05,
            label="Converged at",
            info="Similarity of two drafts at which repairing stops.",
            elem_id=id_("convergence"),
        ),
        gr.Slider(1, 20, value=start.top_k, step=1, label="Passages per search", elem_id=id_("top-k")),
        gr.Radio(
            [("reciprocal ranks", "rrf"), ("weighted blend", "blend")],
            value=start.fusion,
            label="Fusion of the two searches",
            info="With a corpus.",
            elem_id=id_("fusion"),
        ),
        gr.Checkbox(value=start.links, label="Follow links across hops", info="With a corpus.", elem_id=id_("links")),
        gr.Dropdown(workbench.provider_names(), value=start.provider, label="Model", elem_id=id_("provider")),
    ]


def what_if(values: Sequence[Any]) -> WhatIf:
    """The configuration set by the controls."""
    named = dict(zip((field.name for field in fields(WhatIf)), values, strict=True))
    return WhatIf(**{**named, "rounds": int(named["rounds"]), "top_k": int(named["top_k"])})


Status = Literal["ready", "working", "paused", "stopped", "failed", "done"]


@dataclass(frozen=True, kw_only=True)
class LoopView:
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
class LoopStepper:
    """A question's run through the graph, with its own checkpointer."""

    engine: Engine
    context: Context
    sight: LoopView
    _graph: "CompiledStateGraph[State, Context]" = field(repr=False)

    @classmethod
    def begin(cls, engine: Engine, task: Task) -> "LoopStepper":
        """A walk that has not started. Raises `InputError`."""
        state, context = engine.begin(replace(task, method="demo"))
        graph = build_graph(engine.deficits, checkpointer=_checkpointer())
        return cls(engine=engine, context=context, sight=LoopView(question=task.question, state=state), _graph=graph)

    async def advance(self, show: Callable[[LoopView], None], *, steps: bool) -> None:
        """LoopStepper to the end or, with `steps`, through one node; `show` is called whenever there is more to show.

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


_BURST_SECONDS = 0.02
"""Events within this time are shown together: a node's end and the next one's start."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The question, its evidence, and the configurations; two of them are compared.

    `chosen` is the question selected from a list; its paragraphs are the evidence unless `corpus` is named.
    """

    text: str
    chosen: Question | None
    corpus: str | None
    what_ifs: tuple[WhatIf, ...]

    @property
    def golds(self) -> tuple[str, ...]:
        """The gold answers, if the text is still that of the chosen question."""
        known = self.chosen is not None and self.chosen.text.strip() == self.text.strip()
        return self.chosen.golds if self.chosen is not None and known else ()


@dataclass(kw_only=True)
class LoopVisit:
    """One visitor's walks; `sights` is their current display, `fault` the reason why they could not start."""

    workbench: Workbench
    visitor: str
    setup: Setup | None = None
    walks: tuple[LoopStepper, ...] = ()
    fault: str = ""
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def sights(self) -> tuple[LoopView, ...]:
        """The current display, one per walk; empty before they have started."""
        return tuple(walk.sight for walk in self.walks)

    @property
    def under_way(self) -> bool:
        """Is anything being opened, searched or written?"""
        return self._task is not None and not self._task.done()

    async def go(self, setup: Setup, *, steps: bool) -> AsyncIterator[None]:
        """LoopStepper to the end, or through one node each; yields whenever there is more to show.

        A different setup, or a finished walk, starts over. Has no effect while the visit is in progress.
        """
        if self.under_way:
            return
        if setup != self.setup or all(sight.status == "done" for sight in self.sights):
            self.setup, self.walks = setup, ()
        self.fault = ""
        news: asyncio.Queue[bool] = asyncio.Queue()
        task = self._task = asyncio.create_task(self._go(setup, news, steps=steps))
        task.add_done_callback(lambda _: news.put_nowait(False))
        try:
            yield
            while await news.get():
                await asyncio.sleep(_BURST_SECONDS)
                over = not all(news.get_nowait() for _ in range(news.qsize()))
                yield
                if over:
                    break
        finally:
            await _ended(task)  # the visitor has left, or has seen the end

    async def stop(self) -> None:
        """Cancel the work in progress, including the model's call."""
        if self._task is not None:
            await _ended(self._task)

    async def reset(self) -> None:
        """Stop and discard the walks."""
        await self.stop()
        self.setup, self.walks, self.fault = None, (), ""

    async def _go(self, setup: Setup, news: "asyncio.Queue[bool]", *, steps: bool) -> None:
        try:
            if not self.walks:
                self.walks = tuple([await self._begin(setup, what_if) for what_if in setup.what_ifs])
            await asyncio.gather(*(walk.advance(lambda _: news.put_nowait(True), steps=steps) for walk in self.walks))
        except MetaRagError as fault:
            self.fault = str(fault)
        except Exception as fault:  # noqa: BLE001  # the visitor is informed, and the log has the details
            _LOG.exception("The demo could not start with %r.", setup.text)
            self.fault = unexpected(fault)

    async def _begin(self, setup: Setup, what_if: WhatIf) -> LoopStepper:
        engine = what_if.engine(await self.workbench.engine(self.visitor, provider=what_if.provider))
        question_id = setup.chosen.id if setup.chosen is not None else ""
        if setup.corpus is not None:
            retriever = what_if.retriever(await self.workbench.retriever(setup.corpus))
            return LoopStepper.begin(engine, Task(question=setup.text, retriever=retriever, id=question_id))
        if setup.chosen is None:
            raise InputError("Your own question has no paragraphs; search a corpus instead.")
        evidence = passages_of(setup.chosen.paragraphs)
        return LoopStepper.begin(engine, Task(question=setup.text, evidence=evidence, id=question_id))


async def _ended(task: "asyncio.Task[None]") -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait([task])


OWN = "own"
PARAGRAPHS = "paragraphs"
_LISTED = 300
"""The number of listed questions per set; a link can lead to any other."""


def choices(one: QuestionSet, *, also: Question | None = None) -> list[tuple[str, str]]:
    """The selectable questions, as (label, id): one's own question, then those of a set."""
    listed = {question.id: question.text for question in one.questions[:_LISTED]}
    if also is not None:
        listed.setdefault(also.id, also.text)
    return [("Write my own …", OWN), *((label, id_) for id_, label in listed.items())]


def setup(workbench: Workbench, chosen: str, text: str, evidence: str, what_ifs: Sequence[WhatIf]) -> Setup:
    """The setup; the evidence is the paragraphs of the chosen question unless a corpus is named."""
    return Setup(
        text=text,
        chosen=workbench.question(chosen),
        corpus=None if evidence == PARAGRAPHS else evidence,
        what_ifs=tuple(what_ifs),
    )

"""Runs the graph over questions: the single entry point for benchmark, commands, chat, service and demo."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import telemetry
from ..extras import require
from ..llm.ledger import LedgerRow, Totals, total
from ..llm.messages import OnText
from ..llm.opening import Given
from ..retrieval.batching import AsyncEncoder
from ..retrieval.hybrid import Retriever
from ..retrieval.passage import Found, Passage
from ..retrieval.screening import Dropped
from ..settings import Settings
from ..telemetry import Value
from .context import Context, Task
from .graph import Question, build_graph
from .opening import Components, as_passages, open_components
from .state import MethodStop, Round, State, StopReason

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.graph.state import CompiledStateGraph


_LOG = logging.getLogger(__name__)
_RUN = "invoke_workflow"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer with everything that led to it.

    `text` is the chosen draft's answer with citations `[n]`, where n is the 1-based position of the passage in its
    round's prompt; `short_answer` is the bare fact; `chosen` the index of the round that it comes from;
    `calls` the ledger rows of this question; `notes` tell the reader how the answer was made.
    """

    question: str
    text: str
    short_answer: str
    stop_reason: StopReason | MethodStop
    chosen: int
    rounds: tuple[Round, ...]
    evidence: tuple[Found, ...]
    dropped: tuple[Dropped, ...]
    calls: tuple[LedgerRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def fired(self) -> bool:
        """Was an answer rewritten after a diagnosis?"""
        return len(self.rounds) > 1

    @property
    def totals(self) -> Totals:
        """Calls, tokens and cost of this question."""
        return total(self.calls)


_NODE_WORDS = {"retrieve": "Retrieving", "write": "Writing", "diagnose": "Checking"}


@dataclass(frozen=True, kw_only=True)
class Step:
    """A node of the graph is about to run; `rounds` holds the completed rounds."""

    node: str
    rounds: tuple[Round, ...]

    @property
    def words(self) -> str:
        """A description of what the loop is about to do."""
        repair = f"Repairing {self.node.replace('_', ' ')}"
        around = f", round {len(self.rounds)}" if self.rounds else ""
        return f"{_NODE_WORDS.get(self.node, repair)}{around}"


OnStep: TypeAlias = Callable[[Step], None]


@dataclass(frozen=True, kw_only=True)
class Engine(Components):
    """A compiled graph with its components; answers any number of questions concurrently."""

    graph: "CompiledStateGraph[State, Context, Question, State]" = field(repr=False)

    async def answer(
        self,
        question: str,
        *,
        evidence: Sequence[Passage] | None = None,
        retriever: Retriever | None = None,
        grounded: bool = False,
        on_step: OnStep | None = None,
        on_text: OnText | None = None,
    ) -> Answer:
        """Answer a question over `evidence`, or over what `retriever` finds; see `run` and `Task` for the rest."""
        task = Task(question=question, evidence=evidence, retriever=retriever, grounded=grounded, on_text=on_text)
        return await self.run(task, on_step=on_step)

    async def run(self, task: Task, *, on_step: OnStep | None = None) -> Answer:
        """Answer one question; `on_step` is called with every node before it runs.

        Raises `InputError` for an empty question or one with neither evidence nor a retriever,
        and a `ModelError` or `BudgetError` if not even a first draft could be written.
        """
        if task.grounded:
            require("grounding", "An answer from documents alone")
        if task.evidence is not None:
            task = replace(task, evidence=as_passages(task.evidence))
        state, context = self.begin(task)
        with telemetry.span(f"{_RUN} {task.method}", self._about(task)) as span:
            final = await self._run(state, context, on_step)
            span.set_attributes({telemetry.STOP_REASON: final["stop_reason"], telemetry.ROUNDS: len(final["rounds"])})
        return self.answered(final, context)

    def _about(self, task: Task) -> dict[str, Value]:
        about: dict[str, Value] = {telemetry.OPERATION: _RUN, telemetry.WORKFLOW: task.method}
        if task.id:
            about[telemetry.QUESTION_ID] = task.id
        if self.settings.telemetry_content:
            about[telemetry.INPUT_MESSAGES] = telemetry.messages([("user", task.question)])
        return about

    async def _run(self, state: State, context: Context, on_step: OnStep | None) -> Any:
        if on_step is None:
            return await self.graph.ainvoke(state, context=context)
        final: Any = {}
        async for part in self.graph.astream(state, context=context, stream_mode=["tasks", "values"], version="v2"):
            if part["type"] == "values":
                final = part["data"]
            elif part["type"] == "tasks":
                task: Any = part["data"]
                if "input" in task:  # a task that begins; one that ends has a result instead
                    on_step(Step(node=task["name"], rounds=task["input"].get("rounds", ())))
        return final

    def answered(self, final: State, context: Context) -> Answer:
        """The answer in a finished state."""
        return Answer(
            question=final["question"],
            text=final["answer"],
            short_answer=final["short_answer"],
            stop_reason=final["stop_reason"],
            chosen=final["chosen"],
            rounds=final["rounds"],
            evidence=final.get("evidence", ()),
            dropped=final.get("dropped", ()),
            calls=tuple(context.model.rows),
        )


@asynccontextmanager
async def open_engine(
    settings: Settings,
    *,
    model: Given = None,
    pro: "BaseChatModel | None" = None,
    monitor_encoder: AsyncEncoder | None = None,
    ledger_path: Path | None = None,
    without_deficits: Sequence[str] = (),
) -> AsyncIterator[Engine]:
    """An engine as the settings describe it; components passed in are used instead, and left open.

    `model` is any chat model of LangChain's, for both tiers unless there is a `pro`, or an open `LanguageModel`.
    """
    components = open_components(
        settings,
        model=model,
        pro=pro,
        monitor_encoder=monitor_encoder,
        ledger_path=ledger_path,
        without_deficits=without_deficits,
    )
    async with components as opened:
        yield Engine(**vars(opened), graph=build_graph(opened.deficits))

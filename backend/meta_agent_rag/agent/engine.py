"""Runs the graph over questions: the single entry point for benchmark, commands, chat, service and demo."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..llm.ledger import LedgerRow, Totals, total
from ..llm.messages import OnText
from ..llm.opening import Given
from ..retrieval.batching import AsyncEncoder
from ..retrieval.hybrid import Retriever
from ..retrieval.passage import Found, Passage
from ..retrieval.screening import Dropped
from ..settings import Settings
from .context import Context, Task
from .graph import build_graph
from .opening import Components, as_retriever, open_components
from .state import MethodStop, Round, State, StopReason

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph


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

    graph: "CompiledStateGraph[State, Any, Any, Any]" = field(repr=False)

    async def answer(
        self,
        question: str,
        *,
        evidence: Sequence[Passage] | None = None,
        retriever: "Retriever | BaseRetriever | None" = None,
        grounded: bool = False,
        on_step: OnStep | None = None,
        on_text: OnText | None = None,
        config: "RunnableConfig | None" = None,
    ) -> Answer:
        """Answer a question over `evidence`, or over what `retriever` finds; see `run` and `Task` for the rest."""
        task = Task(
            question=question,
            evidence=evidence,
            retriever=None if retriever is None else as_retriever(retriever),
            grounded=grounded,
            on_text=on_text,
            config=config,
        )
        return await self.run(task, on_step=on_step)

    async def run(self, task: Task, *, on_step: OnStep | None = None) -> Answer:
        """Answer one question; `on_step` is called with every node before it runs.

        Raises `InputError` for an empty question or one with neither evidence nor a retriever,
        and a `ModelError` or `BudgetError` if not even a first draft could be written.
        """
        state, context = self.begin(task)
        return self.answered(await self._run(state, context, _traced(task), on_step), context)

    async def _run(self, state: State, context: Context, config: "RunnableConfig", on_step: OnStep | None) -> Any:
        if on_step is None:
            return await self.graph.ainvoke(state, config, context=context)
        final: Any = {}
        modes: list[Any] = ["tasks", "values"]
        async for part in self.graph.astream(state, config, context=context, stream_mode=modes, version="v2"):
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


def _traced(task: Task) -> "RunnableConfig":
    """The caller's configuration, in which a trace shows the run under its method."""
    given: RunnableConfig = task.config or {}
    about = {"method": task.method, "question_id": task.id, **given.get("metadata", {})}
    return {"run_name": task.method, **given, "metadata": about}


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

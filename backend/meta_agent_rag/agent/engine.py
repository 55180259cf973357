"""Runs the graph over questions: the single entry point for benchmark, commands, chat, service and demo."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InputError
from ..llm.client import LanguageModel
from ..llm.ledger import LedgerRow, Totals, total
from ..llm.opening import Given, open_language_model, with_model
from ..prompts import check_prompts
from ..retrieval.batching import AsyncEncoder
from ..retrieval.hybrid import Retriever
from ..retrieval.passage import Found, Passage
from ..retrieval.screening import Dropped, screen
from ..retrieval.supplied import SuppliedRetriever
from ..settings import Settings
from .context import Context, Task
from .deficits import DeficitRegistry, discover_deficits
from .derivation.operator import Operators, discover_operators
from .monitor import monitor_encoder as encoder_of_monitor
from .monitor import policy
from .routes.route import Routes, discover_routes
from .state import MethodStop, Round, State, StopReason
from .voting import small_model_defaults
from .wiring import wired

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

_LOG = logging.getLogger(__name__)


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
        """Whether an answer was rewritten after a diagnosis."""
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
class Engine:
    """A compiled graph and what all questions share; answers any number of questions concurrently."""

    settings: Settings
    model: LanguageModel
    monitor_encoder: AsyncEncoder
    deficits: DeficitRegistry
    operators: Operators = field(default_factory=discover_operators, repr=False)
    routes: Routes = field(default_factory=discover_routes, repr=False)
    graph: "CompiledStateGraph[State, Any, Any, Any]" = field(repr=False)

    def begin(self, task: Task) -> tuple[State, Context]:
        """The initial state and context, for callers that run the graph node by node; raises `InputError` like `run`.

        If there is more evidence than RETRIEVAL_TOP_K, the best passages are shown first, and the rest is searched
        when something is missing, unless SUPPLIED_EVIDENCE is `whole`. In `grounded` runs, passages that address the
        model are removed before ranking.
        """
        require_question(task.question)
        question, retriever = task.question.strip(), task.retriever
        evidence: Sequence[Passage] | None = None if task.evidence is None else as_passages(task.evidence)
        if evidence is None and retriever is None:
            raise InputError(
                "There is nothing to answer from; give evidence or a retriever, or evidence=() for memory alone."
            )
        dropped: tuple[Dropped, ...] = ()
        if evidence is not None and task.grounded and self.settings.screening:
            given = [Found(passage=passage, score=0.0) for passage in evidence]
            screened = screen(given, drop=True, shortest=0)
            evidence, dropped = [found.passage for found in screened.kept], screened.dropped
        if evidence is not None and retriever is None and self.narrows(evidence):
            retriever, evidence = SuppliedRetriever(passages=tuple(evidence), encoder=self.monitor_encoder), None
        context = Context(
            settings=self.settings,
            model=self.model.session(task.id, method=task.method, deadline=task.deadline),
            monitor_encoder=self.monitor_encoder,
            deficits=self.deficits,
            operators=self.operators,
            routes=self.routes,
            retriever=retriever,
            evidence=None if evidence is None else tuple(evidence),
            dropped=dropped,
            oracles=task.oracles,
            grounded=task.grounded,
            asked="" if task.asked.strip() == question else task.asked.strip(),
            conversation=task.conversation,
            manner=task.manner,
            deadline=task.deadline,
        )
        return State(question=question), context

    def narrows(self, evidence: Sequence[Passage]) -> bool:
        """Whether there is more evidence than a first draft is shown, so that the rest is searched on demand."""
        settings = self.settings
        return settings.supplied_evidence == "ranked" and len(evidence) > settings.retrieval_top_k

    async def answer(
        self,
        question: str,
        *,
        evidence: Sequence[Passage] | None = None,
        retriever: "Retriever | BaseRetriever | None" = None,
        grounded: bool = False,
        on_step: OnStep | None = None,
        config: "RunnableConfig | None" = None,
    ) -> Answer:
        """Answer a question over `evidence`, or over what `retriever` finds; see `run` and `Task` for the rest."""
        task = Task(
            question=question,
            evidence=evidence,
            retriever=None if retriever is None else as_retriever(retriever, screening=self.settings.screening),
            grounded=grounded,
            config=config,
        )
        return await self.run(task, on_step=on_step)

    async def run(self, task: Task, *, on_step: OnStep | None = None) -> Answer:
        """Answer one question; `on_step` is called with every node before it runs.

        Raises `InputError` for an empty question or one with neither evidence nor a retriever,
        and a `ModelError` or `BudgetError` if not even a first draft could be written.
        """
        state, context = self.begin(task)
        given: RunnableConfig = task.config or {}
        # a trace shows the run under its method
        about = {"method": task.method, "question_id": task.id, **given.get("metadata", {})}
        config: RunnableConfig = {"run_name": task.method, **given, "metadata": about}
        final: Any = {}
        if on_step is None:
            final = await self.graph.ainvoke(state, config, context=context)
            return self.answered(final, context)
        modes: list[Any] = ["tasks", "values"]
        async for part in self.graph.astream(state, config, context=context, stream_mode=modes, version="v2"):
            if part["type"] == "values":
                final = part["data"]
            elif part["type"] == "tasks":
                begun: Any = part["data"]
                if "input" in begun:  # one that ends has a result instead
                    on_step(Step(node=begun["name"], rounds=begun["input"].get("rounds", ())))
        return self.answered(final, context)

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


def require_question(question: str) -> None:
    """Raise `InputError` for a question that is empty or not valid text."""
    if not isinstance(question, str) or not question.strip():
        raise InputError("The question is empty; write one.")
    if not question.isascii() and question.encode("utf-8", "ignore").decode("utf-8") != question:
        raise InputError("The question is not valid Unicode; check the terminal's encoding and type it again.")


def as_retriever(given: object, *, screening: bool = True) -> Retriever:
    """What a caller passed as a retriever: one of this package, or of LangChain's, whose passages may be screened.

    Raises `InputError` for others.
    """
    if callable(getattr(given, "retrieve", None)):
        return given  # type: ignore[return-value]
    if callable(getattr(given, "ainvoke", None)) and hasattr(given, "_get_relevant_documents"):
        from ..retrieval.langchain import ForeignRetriever

        return ForeignRetriever(inner=given, screening=screening)  # type: ignore[arg-type]
    raise InputError(
        f"{type(given).__name__} is no retriever; pass a LangChain BaseRetriever, or what open_retriever gives."
    )


def as_passages(evidence: Iterable[Passage]) -> tuple[Passage, ...]:
    """The evidence; raises `InputError` for what is no passage with text, and for different ones with the same id."""
    try:
        evidence = tuple(_passage(one) for one in evidence)
    except TypeError:
        raise InputError(f"Evidence must be a list of passages, not {type(evidence).__name__}.") from None
    known: dict[str, Passage] = {}
    for passage in evidence:
        texts = (passage.id, passage.title, passage.text) if isinstance(passage, Passage) else (None,)
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"Evidence must be passages with an id, a title and a text, not {type(passage).__name__}.")
        same = known.setdefault(passage.id, passage)
        if (same.title, same.text) != (passage.title, passage.text):
            raise InputError(f"Two passages have the id {passage.id!r}; `Passage.of(title, text)` makes unique ones.")
    return evidence


def _passage(given: Any) -> Any:
    """A document of LangChain's as a passage; anything else unchanged."""
    if not hasattr(given, "page_content"):
        return given
    title = given.metadata.get("title") or given.metadata.get("source") or ""
    return Passage.of(str(title), given.page_content)


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
    policy(settings)
    check_prompts(settings.prompts_dir, methods=settings.methods_dir)
    settings = small_model_defaults(with_model(settings, model, pro))
    usual = Settings.model_fields["monitor_similarity_threshold"].default
    if settings.monitor_policy != "paper" and settings.monitor_similarity_threshold != usual:
        _LOG.warning("MONITOR_SIMILARITY_THRESHOLD only applies with MONITOR_POLICY=paper and is ignored.")
    deficits = discover_deficits(settings.deficits_dir)
    if without_deficits:
        deficits = deficits.without(without_deficits)
    encoder = monitor_encoder or AsyncEncoder(encoder_of_monitor(settings))
    async with open_language_model(settings, model=model, pro=pro, ledger_path=ledger_path) as opened:
        yield Engine(
            settings=settings,
            model=opened,
            monitor_encoder=encoder,
            deficits=deficits,
            operators=discover_operators(settings.operators_dir),
            routes=discover_routes(settings.routes_dir),
            graph=wired(deficits),
        )

"""What a run is given: the task from its caller, and the context that LangGraph hands to every node."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..llm.client import ModelSession
from ..retrieval.batching import AsyncEncoder
from ..retrieval.hybrid import Retriever
from ..retrieval.passage import Passage
from ..retrieval.screening import Dropped
from ..settings import Settings
from .deficits import DeficitRegistry
from .derivation.operator import Operator
from .state import Draft, Round

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from .routes.route import Route


@dataclass(frozen=True, kw_only=True)
class Oracles:
    """Judgements that a benchmark replaces with its own knowledge, to measure what a stage's mistakes cost.

    `None` leaves a stage unchanged.

    `monitor` says whether a draft is right. `diagnosis` names a round's deficit; the critic is still asked, and its
    advice and queries are kept.
    """

    monitor: Callable[[Draft], bool] | None = None
    diagnosis: Callable[[Round], Awaitable[str]] | None = None


NO_ORACLES = Oracles()


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question, the sources for its answer, and how to answer it.

    `evidence` is supplied by the caller; without it, `retriever` searches. An empty `evidence` means an answer
    from the model's memory. `grounded` answers from the evidence alone, or says NOT FOUND. `asked` holds the
    user's original words if `question` was rewritten from them, `conversation` the earlier turns that it refers to,
    and `manner` tells the writer how to write. `id` and `method` identify the question and its caller in the ledger;
    `deadline` is a `time.monotonic` timestamp. `oracles` replace judgements with a benchmark's own knowledge; `config`
    is LangChain's, for instance with callbacks for a trace.
    """

    question: str
    evidence: Sequence[Passage] | None = None
    retriever: Retriever | None = None
    grounded: bool = False
    asked: str = ""
    conversation: str = ""
    manner: str = ""
    id: str = ""
    method: str = "metarag"
    deadline: float | None = None
    oracles: Oracles = NO_ORACLES
    config: "RunnableConfig | None" = None


@dataclass(frozen=True, kw_only=True)
class Context:
    """Dependencies and policies of one question's run; see `Task` for the fields that come from it.

    `dropped` are passages of the evidence that address the model. Follow-up retrieval requires a `retriever`.
    `grounded` switches answers from memory off and lets the writer abstain (chat, service); a benchmark wants a best
    guess.
    """

    settings: Settings
    model: ModelSession
    monitor_encoder: AsyncEncoder
    deficits: DeficitRegistry
    operators: Mapping[str, Operator]
    routes: "Mapping[str, Route]"
    retriever: Retriever | None = None
    evidence: tuple[Passage, ...] | None = None
    dropped: tuple[Dropped, ...] = ()
    oracles: Oracles = NO_ORACLES
    grounded: bool = False
    asked: str = ""
    conversation: str = ""
    manner: str = ""
    deadline: float | None = None

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def may_search(self) -> bool:
        """Whether a repair can search for more evidence."""
        return self.retriever is not None and "search" not in self.settings.loop_without

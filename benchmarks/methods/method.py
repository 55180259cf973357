"""What a method is: a way from a question and its evidence to an answer, over the shared model interface."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.discovery import require_functions
from meta_agent_rag.errors import UnpricedModelError
from meta_agent_rag.llm.ledger import LedgerRow, total
from meta_agent_rag.retrieval.hybrid import Retriever

DOLLARS, TOKENS = "dollars", "tokens"
BUDGET_KINDS = (DOLLARS, TOKENS)
"""By price, or by prompt and completion tokens, cached or not."""


@dataclass(frozen=True, kw_only=True)
class RunBudget:
    """What a sampling method may spend on a question, in dollars or tokens: as much as another row spent on it."""

    kind: str
    amount: float

    def spent(self, calls: Sequence[LedgerRow]) -> float:
        """What calls have spent of it; raises `UnpricedModelError` if dollars are counted and a price is unknown."""
        sums = total(calls)
        if self.kind == TOKENS:
            return float(sums.prompt_tokens + sums.completion_tokens)
        return dollars(sums.cost_usd)


def dollars(amount: object) -> float:
    """An amount as a number; raises `UnpricedModelError` if it is unknown."""
    if amount is None:
        raise UnpricedModelError("The model has no known price; set PRICE_AS, or make the rows equal in tokens.")
    return float(str(amount))


@dataclass(frozen=True, kw_only=True)
class MethodTask(Task):
    """One question for a method, under the name used for its calls and row.

    `search` serves methods that search for their own evidence: the task's retriever, or one over the
    supplied evidence. `budget` is what a sampling method may spend, if another row sets it.
    """

    search: Retriever
    budget: RunBudget | None = None


Answerer: TypeAlias = Callable[[Engine, MethodTask], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method by name, with its paper, what it does in one line, and how it departs from the paper.

    `quotes` says that its drafts quote the evidence, so that supporting facts can be scored. `loop`
    says that it runs the graph, so that deficits, oracles and the monitor's settings apply to it. `pins` are
    settings that the method fixes, whatever the run's settings are. `samples` says that it draws as many samples
    as its budget pays for, if it has one.
    """

    name: str
    citation: str
    about: str
    departures: str
    answer: Answerer
    quotes: bool = False
    loop: bool = False
    samples: bool = False
    pins: tuple[tuple[str, object], ...] = ()

    def __post_init__(self) -> None:
        require_functions("method", self, "answer")

"""What a method is: a way from a question and its evidence to an answer, over the shared model interface."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.discovery import require_functions
from meta_agent_rag.retrieval.hybrid import Retriever


@dataclass(frozen=True, kw_only=True)
class MethodTask(Task):
    """One question for a method, under the name used for its calls and row.

    `search` serves methods that search for their own evidence: the task's retriever, or one over the
    supplied evidence. `budget` is the number of tokens that a sampling method may spend, if another row sets it.
    """

    search: Retriever
    budget: int | None = None


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

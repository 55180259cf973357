"""What a method is: a way from a question and its evidence to an answer, behind the same model door."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.retrieval.hybrid import Retriever

from ..rows.allowance import Allowance


@dataclass(frozen=True, kw_only=True)
class MethodTask(Task):
    """One question for a method, under the name that its calls and row go by.

    `search` is what a method that looks for its own evidence uses: the task's retriever, or one over the
    supplied evidence. `allowance` is what a method that samples may spend, where another row sets it.
    """

    search: Retriever
    allowance: Allowance | None = None


Answerer: TypeAlias = Callable[[Engine, MethodTask], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method by name, with the paper that it comes from, what it does in a line, and how it departs from the paper.

    `quotes` tells that its drafts quote the evidence, so that supporting facts can be scored. `loop`
    tells that it runs the graph, so that deficits, oracles and the monitor's settings concern it. `pins` are
    settings that belong to the method itself, whatever the run's are. `samples` tells that it draws as many samples
    as an allowance pays for, where it is given one.
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

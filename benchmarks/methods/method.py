"""What a method is: a way from a question and its evidence to an answer, behind the same model door."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.retrieval.hybrid import Retriever
from meta_agent_rag.retrieval.passage import Passage


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question for a method: with `evidence` supplied, or a `retriever` to find it."""

    id: str
    question: str
    evidence: tuple[Passage, ...] | None
    retriever: Retriever | None


Answerer: TypeAlias = Callable[[Engine, Task], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method by name, with the paper that it comes from."""

    name: str
    citation: str
    answer: Answerer

"""Ask one question with a benchmark method and a scripted model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.methods import MethodTask, discover_methods
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import Retrieval, Retriever
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.retrieval.supplied import SuppliedRetriever
from meta_agent_rag.testing import ScriptedModel
from tests.loop import EVIDENCE, QUESTION, Run, passage, settings_in

CALLED = "the row's name"
"""A task's name in tests; it differs from the method's own name, as in a sweep."""
TITLES = ("Alder", "Beech", "Cedar", "Dogwood", "Elm", "Fir", "Gorse", "Hazel", "Ivy", "Juniper", "Katsura", "Larch")


def numbered_passages(count: int) -> tuple[Passage, ...]:
    """`count` passages, each with a distinct sentence."""
    names = [f"{TITLES[place % len(TITLES)]} {place // len(TITLES) + 1}" for place in range(count)]
    return tuple(passage(name.lower(), f"{name} stands in the park of Oslo.") for name in names)


@dataclass
class ListRetriever:
    """A retriever that returns the next passages of a list, whatever the query, and records its queries."""

    passages: Sequence[Passage]
    asked: list[tuple[str, int, frozenset[str]]] = field(default_factory=list)

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        (query,) = queries
        self.asked.append((query, k, exclude))
        left = [Found(passage=one, score=1.0) for one in self.passages if one.id not in exclude]
        return Retrieval(found=tuple(left[:k]))

    @property
    def queries(self) -> list[str]:
        return [query for query, _, _ in self.asked]


async def answered(
    folder: Path,
    method: str,
    script: Mapping[str, Any],
    *assignments: str,
    question: str = QUESTION,
    evidence: tuple[Passage, ...] = EVIDENCE,
    retriever: Retriever | None = None,
    model: ScriptedModel | None = None,
) -> Run:
    """Answer one question with one method: over the retriever if given, else over the evidence."""
    model = model or ScriptedModel(script)
    encoder = AsyncEncoder(HashEncoder())
    async with open_engine(settings_in(folder, *assignments), model=model, monitor_encoder=encoder) as engine:
        task = MethodTask(
            id="q1",
            question=question,
            method=CALLED,
            search=retriever or SuppliedRetriever(passages=evidence, encoder=encoder),
            evidence=None if retriever is not None else evidence,
            retriever=retriever,
        )
        answer = await discover_methods()[method].answer(engine, task)
    return Run(answer=answer, model=model)

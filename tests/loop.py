"""Ask the loop one question with a scripted model; shared by the tests of the agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.deficits import DeficitRegistry, discover_deficits
from meta_agent_rag.agent.engine import Answer, open_engine
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.retrieval.screening import Dropped
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import Scripted, ScriptedModel

QUESTION = "Where was the director of The Salt Road born?"
FILM_SENTENCE = "The Salt Road is a film that Mira Holt directed."
BIRTH_SENTENCE = "Mira Holt was born in Oslo."


def passage(id_: str, text: str) -> Passage:
    return Passage(id=id_, doc_id=id_, title=id_.title(), text=text)


FILM = passage("film", FILM_SENTENCE)
BIRTH = passage("birth", BIRTH_SENTENCE)
NAMESAKE = passage("namesake", "Another Mira Holt keeps a bakery in Rome and was never near a film.")
EVIDENCE = (FILM, BIRTH)
PACKAGED = DeficitRegistry(
    deficits=tuple(
        discover_deficits()[name]
        for name in ("external_only", "insufficient_knowledge", "internal_only", "reasoning_error")
    )
)
"""The deficits of the packaged loop, without any others in the folder."""
FURTHER = tuple(name for name in discover_deficits().names if name not in PACKAGED.names)


def draft(short: str, *, quotes: Sequence[str] = (), answer: str | None = None) -> dict[str, Any]:
    """A reply of the stages `write` and `rewrite`."""
    said = answer or f"She was born in {short} [2]."
    return {"steps": ["Mira Holt directed it."], "quotes": list(quotes), "answer": said, "short_answer": short}


def second_answer(short: str) -> dict[str, Any]:
    return {"steps": ["Mira Holt directed it."], "short_answer": short}


def critique(deficit: str, *, queries: Sequence[str] = (), suggestion: str = "") -> dict[str, Any]:
    return {
        "rationale": "The second hop is missing.",
        "deficit": deficit,
        "error_type": "incomplete_reasoning",
        "suggestion": suggestion,
        "suggested_queries": list(queries),
    }


WRONG: Mapping[str, Scripted] = {
    "write": draft("Paris"),
    "second_answer": second_answer("Oslo"),
    "evaluate": critique("reasoning_error", suggestion="Read the second passage."),
    "rewrite": draft("Oslo", quotes=[BIRTH_SENTENCE]),
}
"""A wrong first draft, corrected by the first repair."""


@dataclass
class FakeRetriever:
    """Finds preset passages for each query and records its queries."""

    results: Mapping[str, Sequence[Passage]]
    dropped: tuple[Dropped, ...] = ()
    asked: list[tuple[tuple[str, ...], int, frozenset[str]]] = field(default_factory=list)

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        self.asked.append((tuple(queries), k, exclude))
        found = [item for query in queries for item in self.results.get(query, ())]
        return Retrieval(found=tuple(Found(passage=item, score=1.0) for item in found), dropped=self.dropped)

    @property
    def queries(self) -> list[str]:
        return [query for queries, _, _ in self.asked for query in queries]


@dataclass(frozen=True, kw_only=True)
class Run:
    """An answer and the model that produced it."""

    answer: Answer
    model: ScriptedModel

    @property
    def stages(self) -> list[str]:
        return [request.stage for request in self.model.requests]

    def prompt(self, stage: str, nth: int = 0) -> str:
        """The last message of the nth call of a stage."""
        return user_text(self.model.asked(stage)[nth])


def user_text(request: Request) -> str:
    return request.messages[-1].content


def settings_in(folder: Path, *assignments: str) -> Settings:
    """Settings with a priced provider and no response cache: a script may answer a request in several ways.

    The monitor compares the draft with one second answer, and code alone checks claims: both need the fewest lines to
    script.
    """
    fixed = ["LLM_PROVIDER=deepseek", "DEEPSEEK_API_KEY=none", "RESPONSE_CACHE=false", f"MARAG_DATA_DIR={folder}"]
    return Settings.load([*fixed, "MONITOR_POLICY=agreement", "CLAIM_CHECK=exact", *assignments])


async def ask(
    folder: Path,
    script: Mapping[str, Scripted],
    *assignments: str,
    question: str = QUESTION,
    model: ScriptedModel | None = None,
    without_deficits: Sequence[str] = FURTHER,
    **options: Any,
) -> Run:
    """Ask an engine one question; evidence is supplied unless a retriever is given.

    By default, the engine has the packaged deficits alone.
    """
    model = model or ScriptedModel(script)
    if "retriever" not in options:
        options.setdefault("evidence", EVIDENCE)
    encoder, settings = AsyncEncoder(HashEncoder()), settings_in(folder, *assignments)
    opened = open_engine(settings, model=model, monitor_encoder=encoder, without_deficits=without_deficits)
    async with opened as engine:
        answer = await engine.run(Task(question=question, **options))
    return Run(answer=answer, model=model)

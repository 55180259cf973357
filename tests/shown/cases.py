"""Right and wrong answers over documents, run through the checks with a model that replies as each case says.

`cases.yaml` has a few of them to read, `cases.jsonl.gz` all of them, by 18 writers who did not know the checks.
"""

import gzip
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks, GroundedAnswer, checked
from meta_agent_rag.grounding.quotes import is_verbatim
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.testing.scripted import Line
from meta_agent_rag.text.sentences import sentences
from tests.loop import draft, second_answer, settings_in, user_text

Critic: TypeAlias = Literal["honest", "gullible", "sly"]
"""How claims are judged: as the case labels each one; all supported; all supported except the control."""
_FOLDER = Path(__file__).parent
_LISTED = re.compile(r"^(\d+)\. ", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Case:
    """An answer to a question about passages. `wrong` is the number of its wrong claim, or `None` if it is right.

    `words` are those of the passages that decide, and `calculation` how figures follow that no passage has.
    """

    name: str
    kind: str
    passages: tuple[Passage, ...]
    question: str
    answer: str
    short: str
    quotes: tuple[str, ...]
    words: tuple[str, ...]
    wrong: int | None
    calculation: str = ""


Check: TypeAlias = Callable[[Case], Awaitable[GroundedAnswer]]
"""The case's answer as shown after the checks."""


@cache
def some_cases() -> tuple[Case, ...]:
    """The cases of `cases.yaml`."""
    return tuple(_cases(yaml.safe_load((_FOLDER / "cases.yaml").read_text(encoding="utf-8"))))


@cache
def all_cases() -> tuple[Case, ...]:
    """The cases of `cases.jsonl.gz`."""
    with gzip.open(_FOLDER / "cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(_cases(map(json.loads, lines)))


def _cases(domains: Sequence[Any] | Iterator[Any]) -> Iterator[Case]:
    for domain in domains:
        passages = tuple(
            Passage(id=str(number), doc_id=str(number), title=one["title"], text=one["text"])
            for number, one in enumerate(domain["passages"], start=1)
        )
        for side in ("right", "wrong"):
            for row in domain[side]:
                yield Case(
                    name=f"{domain['domain']}: {row['answer']}",
                    kind=row["kind"],
                    passages=passages,
                    question=row["question"],
                    answer=row["answer"],
                    short=row["short"],
                    quotes=tuple(row["quotes"]),
                    words=tuple(row.get("words", row["quotes"])),
                    wrong=row.get("claim", 1) if side == "wrong" else None,
                    calculation=row.get("calculation", ""),
                )


@dataclass(frozen=True, kw_only=True)
class _Fixed:
    passages: Sequence[Passage]

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        return Retrieval(found=tuple(Found(passage=one, score=1.0, dense=0.9) for one in self.passages)[:k])


@asynccontextmanager
async def checking(folder: Path, critic: Critic, *assignments: str) -> AsyncIterator[Check]:
    """What checks one case after the other, with one engine; it must not be called concurrently."""
    case: Case

    def written(_: Request) -> Line:
        return draft(case.short, quotes=case.quotes, answer=case.answer) | {"confidence": 0.9}

    def answered(_: Request) -> Line:
        return second_answer(case.short)

    def judged(request: Request) -> Line:
        return _verdicts(case, critic, user_text(request))

    model = ScriptedModel({"write": written, "second_answer": answered, "check_claims": judged})
    settings = settings_in(folder, "RETRIEVAL_TOP_K=8", "MAX_METACOGNITIVE_ROUNDS=0", *assignments)
    async with open_engine(settings, model=model, monitor_encoder=AsyncEncoder(HashEncoder())) as engine:
        checks = Checks.of(settings)

        async def check(one: Case) -> GroundedAnswer:
            nonlocal case
            case = one
            retriever = _Fixed(passages=one.passages)
            answer = await engine.run(Task(question=one.question, retriever=retriever, grounded=True))
            return await checked(engine, answer, checks)

        yield check


def _verdicts(case: Case, critic: Critic, asked: str) -> Mapping[str, Any]:
    """The critic's reply to the claims it is shown; a dishonest or gullible critic names any verbatim quote."""
    listed = [int(number) for number in _LISTED.findall(asked.rpartition("Claims:")[2])]
    right = {number for number in listed if number > 0 and (case.wrong is None or number < case.wrong)}
    believed = {"honest": right, "gullible": set(listed), "sly": {number for number in listed if number > 0}}[critic]
    words = case.words if critic == "honest" else _nearest(case)

    def verdict(number: int) -> dict[str, Any]:
        if number not in believed:
            return {"claim": number, "words": [], "verdict": "not stated", "reason": "The passages leave it open."}
        return {"claim": number, "words": list(words), "calculation": case.calculation, "verdict": "supported"}

    return {"sufficient": True, "claims": [verdict(number) for number in listed], "answers_question": True}


def _nearest(case: Case) -> tuple[str, ...]:
    texts = [passage.searchable() for passage in case.passages]
    quoted = tuple(quote for quote in case.quotes if is_verbatim(quote, texts))
    return quoted or (sentences(case.passages[0].text)[0].strip(),)


def shown(case: Case, reply: GroundedAnswer) -> bool:
    """Whether all claims are shown as supported; for a wrong answer, whether its wrong claim is."""
    if reply.refused is not None:
        return False
    support = [found.supported for _, found in reply.claims]
    return all(support) if case.wrong is None else support[case.wrong - 1]

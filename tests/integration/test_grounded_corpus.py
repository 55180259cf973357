"""Answers over the sample corpus: unsupported ones are never shown as grounded, supported ones are not refused."""

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks
from meta_agent_rag.chat.session import GroundedAnswerer
from meta_agent_rag.grounding.abstention import Reason, refusal
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.sample import SAMPLE
from meta_agent_rag.retrieval.encoders import Encoder
from meta_agent_rag.retrieval.encoders.loading import PACKAGED, load_encoder
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.retrieval.vectors import FloatMatrix
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.text.sentences import sentences
from tests.loop import settings_in
from tests.reader import NOT_FOUND, passages_of, question_of

ROOT = Path(__file__).parents[2]
UNANSWERABLE: list[tuple[str, str, str]] = [
    (question, said, short)
    for question, said, short in yaml.safe_load((ROOT / "tests" / "unanswerable.yaml").read_text(encoding="utf-8"))
]
ROWS: list[dict[str, Any]] = json.loads((ROOT / "benchmarks/sample/questions.json").read_text(encoding="utf-8"))[:50]
FEW = 2
"""How many of the fifty questions' supporting sentences retrieval may miss; at present it misses none."""

Draft: TypeAlias = dict[str, Any]
Memory: TypeAlias = Callable[[Request, str, str], Draft]


class Remembering:
    """The packaged encoder with a cache, since the same passages recur with every question."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.known: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        return self.encoder.encode_queries(texts)

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        import numpy

        if new := [text for text in dict.fromkeys(texts) if text not in self.known]:
            self.known.update(zip(new, self.encoder.encode_passages(new), strict=True))
        return numpy.stack([self.known[text] for text in texts])


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> AsyncEncoder:
    folder = tmp_path_factory.mktemp("encoder")
    settings = Settings.load([f"MARAG_DATA_DIR={folder}"])
    return AsyncEncoder(Remembering(load_encoder(settings, PACKAGED).encoder))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of all tests in this file; the first test builds its corpus."""
    return tmp_path_factory.mktemp("data")


@asynccontextmanager
async def asking(
    data: Path, encoder: AsyncEncoder, model: ScriptedModel, *assignments: str
) -> AsyncIterator[GroundedAnswerer]:
    settings = settings_in(data, f"ENCODER={PACKAGED}", *assignments)
    async with (
        open_retriever(settings, SAMPLE, encoder=encoder) as retriever,
        open_engine(settings, model=model, monitor_encoder=encoder) as engine,
    ):
        yield GroundedAnswerer(engine=engine, retriever=retriever, checks=Checks.of(settings))


# -- answers not in the documents


def unrelated(request: Request, question: str) -> tuple[int, str]:
    """The prompt's sentence with the least overlap with the question, and its passage number."""
    asked = set(re.findall(r"\w{4,}", question.lower()))
    texts = [(number, sentences(text)[0].strip()) for number, text in passages_of(request).items()]
    return min(texts, key=lambda one: (len(asked & set(re.findall(r"\w+", one[1].lower()))), -one[0]))


def without_quotes(request: Request, said: str, short: str) -> Draft:
    return {"quotes": [], "answer": f"{said}.", "short_answer": short, "confidence": 1.0}


def with_invented_quotes(request: Request, said: str, short: str) -> Draft:
    return without_quotes(request, f"{said} [1]", short) | {"quotes": [f"As is well known, {said.lower()}."]}


def beside_a_true_quote(request: Request, said: str, short: str) -> Draft:
    """A true, cited quote next to a claim that is not in the documents."""
    number, quote = unrelated(request, question_of(request))
    return without_quotes(request, f"{quote.rstrip('.')} [{number}]. {said} [{number}]", short) | {"quotes": [quote]}


def from_memory(way: Memory) -> ScriptedModel:
    """A model that answers from memory, agrees with itself, and whose critic finds no fault."""
    known = {question: (said, short) for question, said, short in UNANSWERABLE}

    def write(request: Request) -> Draft:
        return way(request, *known[question_of(request)])

    def second_answer(request: Request) -> Draft:
        return {"steps": ["It is well known."], "short_answer": known[question_of(request)][1]}

    return ScriptedModel({"write": write, "second_answer": second_answer})


def test_there_are_fifty_distinct_questions() -> None:
    assert len({question for question, _, _ in UNANSWERABLE}) == len(UNANSWERABLE) == 50
    assert len(ROWS) == 50
    corpus = (ROOT / "benchmarks/sample/questions.json").read_text(encoding="utf-8")
    assert not {question for question, _, _ in UNANSWERABLE if question in corpus}


@pytest.mark.slow
async def test_an_obedient_model_answers_no_unanswerable_question(data: Path, encoder: AsyncEncoder) -> None:
    model = ScriptedModel({"write": NOT_FOUND, "second_answer": {"steps": [], "short_answer": "NOT FOUND"}})
    async with asking(data, encoder, model) as companion:
        replies = [(await companion(question, question)).grounded for question, _, _ in UNANSWERABLE]
    assert {reply.refused for reply in replies} == {"not_found"}
    assert all("documents do not answer this" in reply.text and not reply.citations for reply in replies)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "reason"),
    [
        (with_invented_quotes, "invented_quotes"),
        (beside_a_true_quote, "unsupported"),
    ],
)
async def test_answers_from_memory_are_never_shown_as_grounded(
    data: Path, encoder: AsyncEncoder, way: Memory, reason: Reason
) -> None:
    grounded: list[str] = []
    async with asking(data, encoder, from_memory(way)) as companion:
        for question, said, _ in UNANSWERABLE:
            reply = await companion(question, question)
            if reply.grounded.refused is None:
                grounded.append(f"{question} -> {reply.text}")
                continue
            assert reply.grounded.refused == reason
            assert reply.text.startswith(refusal(reason)), said
            assert (reply.short_answer, reply.grounded.citations) == ("", ())
    assert grounded == []

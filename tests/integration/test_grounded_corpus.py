"""Answers over the sample corpus that its documents do not support are never shown as grounded."""

import re
from collections.abc import Callable
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
from meta_agent_rag.retrieval.encoders.loading import PACKAGED, load_encoder
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.text.sentences import sentences
from tests.integration.test_injection import passages_of, question_of
from tests.loop import settings_in

ROOT = Path(__file__).parents[2]
UNANSWERABLE: list[tuple[str, str, str]] = [
    (question, said, short)
    for question, said, short in yaml.safe_load((ROOT / "tests" / "unanswerable.yaml").read_text(encoding="utf-8"))
]

Draft: TypeAlias = dict[str, Any]
Memory: TypeAlias = Callable[[Request, str, str], Draft]


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


@pytest.mark.slow
async def test_answers_from_memory_are_never_shown_as_grounded(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, f"ENCODER={PACKAGED}")
    encoder = AsyncEncoder(load_encoder(settings, PACKAGED).encoder)
    ways: dict[Reason, Memory] = {"invented_quotes": with_invented_quotes, "unsupported": beside_a_true_quote}
    async with open_retriever(settings, SAMPLE, encoder=encoder) as retriever:
        for reason, way in ways.items():
            async with open_engine(settings, model=from_memory(way), monitor_encoder=encoder) as engine:
                companion = GroundedAnswerer(engine=engine, retriever=retriever, checks=Checks.of(settings))
                for question, _, _ in UNANSWERABLE:
                    reply = await companion(question, question)
                    assert reply.grounded.refused == reason, f"{question} -> {reply.text}"
                    assert reply.text.startswith(refusal(reason)), question
                    assert (reply.short_answer, reply.grounded.citations) == ("", ())

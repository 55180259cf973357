"""Signals from comparing a draft with the second answer, and the policy over them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meta_agent_rag.agent.context import Context
from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.monitor import agreement_policy, paper_policy, policy
from meta_agent_rag.agent.prompting import pack
from meta_agent_rag.agent.signals import measure
from meta_agent_rag.agent.state import Draft, SecondAnswer, Signals
from meta_agent_rag.errors import UnknownNameError
from meta_agent_rag.grounding.abstention import is_abstention
from meta_agent_rag.grounding.short_answer import same_answer, without_disambiguation
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.connections import Connections
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Found
from meta_agent_rag.retrieval.vectors import FloatMatrix
from meta_agent_rag.testing import ScriptedModel
from tests.loop import BIRTH, BIRTH_SENTENCE, FILM, QUESTION, settings_in

PACKED = pack([Found(passage=FILM, score=0.0), Found(passage=BIRTH, score=0.0)], 1000)


class CountingEncoder(HashEncoder):
    """Records what it encodes."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        self.texts += texts
        return super().encode_passages(texts)


def signals(similarity: float | None = None, *, abstained: bool = False) -> Signals:
    return Signals(similarity=similarity, agreement=None, verbatim=None, abstained=abstained, evidence_passages=2)


def concluded(short: str, error: str | None = None) -> SecondAnswer:
    return SecondAnswer(short_answer=short, steps=(), packed_ids=("film", "birth"), error=error)


async def measured(
    folder: Path, draft: str, other: SecondAnswer, quotes: Sequence[str] = (), encoder: HashEncoder | None = None
) -> Signals:
    settings = settings_in(folder)
    model = LanguageModel(
        settings=settings,
        choice=choose_provider(settings),
        connections=Connections(settings=settings, given={"": ScriptedModel({})}),
    )
    context = Context(
        settings=settings,
        model=model.session(),
        monitor_encoder=AsyncEncoder(encoder or HashEncoder()),
        deficits=discover_deficits(),
        operators={},
        routes={},
    )
    written = Draft(answer=draft, short_answer=draft, quotes=tuple(quotes), abstained=is_abstention(draft))
    return await measure(context, QUESTION, written, other, PACKED)


@pytest.mark.parametrize(
    ("similarity", "satisfied"), [(0.4, True), (0.41, True), (1.0, True), (0.399, False), (-1.0, False), (None, False)]
)
def test_the_papers_policy_is_a_similarity_threshold(tmp_path: Path, similarity: float | None, satisfied: bool) -> None:
    assert paper_policy(signals(similarity), settings_in(tmp_path)).satisfied is satisfied


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("Oslo", "oslo.", True),
        ("Gatwick", "Gatwick Airport", True),
        ("Sleepy Hollow", "Sleepy Hollow (film)", True),
        ("1912", "12 May 1912", True),
        ("5,000", "5000 people", True),
        ("1.2 billion", "$1.2 billion", True),
        ("1990-1995", "1995", True),
        ("5", "5,000", False),
        ("3", "3.5", False),
        ("2 billion", "$1.2 billion", False),
        ("-5", "5", False),
        ("10", "10:30", False),
        ("5.0", "5", True),
        (".5", "0.5", True),
        (".5", "5", False),
        ("2,5", "2.5", True),
        ("minus 5", "(\u22125)", True),
        ("-$5", "\u20135", True),
        ("-$5", "$5", False),
        ("3-2", "3:2", True),
        ("1 -0", "1-0", True),
        ("1939 -1945", "1939\u20131945", True),
        ("12.05.2001", "2001", True),
        ("16:9", "16.9", False),
        ("10-5", "10", False),
        ("5 million", "5", False),
        ("5 million", "5 million people", True),
        ("CBS", "NBC", False),
        ("Ann", "Annette", False),
        ("Airport Gatwick", "Gatwick Airport", False),
        ("", "Oslo", False),
        ("no", "no", True),
    ],
)
def test_agreement_compares_short_answers(one: str, other: str, agree: bool) -> None:
    assert same_answer(one, other) is agree
    assert same_answer(other, one) is agree


def test_only_agreement_satisfies(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    assert agreement_policy(replace(signals(0.1), agreement=True), settings).satisfied
    assert not agreement_policy(replace(signals(0.99), agreement=False), settings).satisfied
    assert not agreement_policy(replace(signals(1.0, abstained=True), agreement=True), settings).satisfied


@pytest.mark.parametrize(
    ("short", "bare"),
    [
        ("Salt Road (film)", "Salt Road"),
        ("salt road (film)", "salt road"),
        ("125 lb (57 kg)", "125 lb (57 kg)"),
        ("Salt Road (song)", "Salt Road (song)"),
        ("(film)", "(film)"),
    ],
)
def test_the_disambiguation_of_a_title_is_stripped_from_an_answer(short: str, bare: str) -> None:
    assert without_disambiguation(short, ["Salt Road (film)", "125 lb", "(film)"]) == bare


async def test_equal_short_answers_are_not_encoded(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    found = await measured(tmp_path, "The Oslo.", concluded("oslo"), encoder=encoder)
    assert (found.similarity, found.agreement) == (1.0, True)
    assert encoder.texts == []


async def test_similarity_is_the_cosine_of_the_short_answers(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    found = await measured(tmp_path, "Oslo in Norway", concluded("Oslo, Sweden"), encoder=encoder)
    assert encoder.texts == ["Oslo in Norway", "Oslo, Sweden"]
    one, other = HashEncoder().encode_passages(encoder.texts)
    assert found.similarity == pytest.approx(float(np.dot(one, other)))
    assert 0 < (found.similarity or 0) < 1
    assert found.agreement is False


@pytest.mark.parametrize(
    ("draft", "other"),
    [
        ("NOT FOUND", concluded("NOT FOUND")),
        ("NOT FOUND", concluded("Oslo")),
        ("Oslo", concluded("cannot be determined")),
        ("Oslo", concluded("Oslo", error="the call failed")),
    ],
)
async def test_without_two_answers_there_is_no_agreement_signal(
    tmp_path: Path, draft: str, other: SecondAnswer
) -> None:
    encoder = CountingEncoder()
    found = await measured(tmp_path, draft, other, encoder=encoder)
    assert (found.similarity, found.agreement) == (None, None)
    assert found.abstained is (draft == "NOT FOUND")
    assert encoder.texts == []
    assert not paper_policy(found, settings_in(tmp_path, "MONITOR_SIMILARITY_THRESHOLD=-1")).satisfied


@pytest.mark.parametrize(
    ("quotes", "share"),
    [((), None), ((BIRTH_SENTENCE,), 1.0), ((BIRTH_SENTENCE, "She was born in Paris."), 0.5), (("Paris",), 0.0)],
)
async def test_verbatim_is_the_share_of_verbatim_quotes(
    tmp_path: Path, quotes: Sequence[str], share: float | None
) -> None:
    found = await measured(tmp_path, "Oslo", concluded("Oslo"), quotes)
    assert found.verbatim == share
    assert found.evidence_passages == 2


async def test_an_unknown_policy_is_rejected_before_any_call(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"monitor policy 'gut_feeling'.*paper"):
        policy(settings_in(tmp_path, "MONITOR_POLICY=gut_feeling"))
    model = ScriptedModel({})
    with pytest.raises(UnknownNameError):
        async with open_engine(settings_in(tmp_path, "MONITOR_POLICY=gut_feeling"), model=model):
            pass
    assert policy(settings_in(tmp_path)) is agreement_policy

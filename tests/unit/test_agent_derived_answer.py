"""An unsupported answer is replaced by the sentences of the facts from which the loop derived it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.derivation import Derivation, Fact
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks, GroundedAnswer, checked
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import ScriptedModel
from tests.loop import BIRTH_SENTENCE, FILM_SENTENCE, settings_in
from tests.unit.test_agent_grounded import FixedRetriever, answering, verdicts

WHERE = "Where was the director of The Salt Road born?"
FACTS = (
    Fact(chain=0, index=0, asked="Who?", entity="", value="Mira Holt", passage_id="film", sentence=FILM_SENTENCE),
    Fact(chain=0, index=1, asked="Where?", entity="", value="Oslo", passage_id="birth", sentence=BIRTH_SENTENCE),
)
NO = verdicts({"claim": 1, "words": [], "verdict": "not stated"})


async def shown(
    folder: Path,
    *assignments: str,
    facts: Sequence[Fact] = FACTS,
    answer: str = "Oslo",
    question: str = WHERE,
    short: str = "Oslo",
    compared: bool = False,
    judged: Mapping[str, Any] = NO,
) -> GroundedAnswer:
    """The checked answer for a draft that no passage supports, given a derivation."""
    said = answering("Oslo is where its director first saw the light [3].", short=short)
    model = ScriptedModel({**said, "check_claims": judged})
    settings = settings_in(folder, "CLAIM_CHECK=critic", *assignments)
    async with open_engine(settings, model=model, monitor_encoder=AsyncEncoder(HashEncoder())) as engine:
        drafted = await engine.run(Task(question=question, retriever=FixedRetriever(), grounded=True))
        derivation = Derivation(plan=None, facts=tuple(facts), answer=answer, because="", compared=compared)
        rounds = tuple(replace(one, derivation=derivation) for one in drafted.rounds)
        return await checked(engine, replace(drafted, rounds=rounds), Checks.of(settings))


async def test_the_sentences_of_the_facts_are_shown_with_citations(tmp_path: Path) -> None:
    reply = await shown(tmp_path)
    assert (reply.refused, reply.short_answer) == (None, "Oslo")
    for sentence, source in ((FILM_SENTENCE, "The Salt Road"), (BIRTH_SENTENCE, "Mira Holt")):
        assert f"{sentence.rstrip('.')} [{source}" in reply.text
    assert "first saw the light" not in reply.text
    assert all(support.supported for _, support in reply.claims)
    stages = [row.stage for row in reply.calls]
    assert stages.count("write") == 1, "each call is counted once"
    assert stages.count("check_claims") == 1
    assert "check_claims" not in [row.stage for row in reply.answer.calls]


@pytest.mark.parametrize(
    "changed",
    [
        {"answer": "Bergen"},
        {"answer": "Oslo Fjord"},
        {"facts": FACTS[1:]},
        {"facts": (replace(FACTS[0], sentence="", passage_id=None), FACTS[1])},
        {"facts": (replace(FACTS[0], open="no passage gives it"), FACTS[1])},
        {"facts": (replace(FACTS[0], passage_id="elsewhere"), FACTS[1])},
        {"facts": (FACTS[1], replace(FACTS[1], index=1))},
        {"question": "Was the director of The Salt Road born in Oslo?", "answer": "yes", "short": "yes"},
    ],
    ids=["other", "longer", "one_fact", "no_sentence", "open", "not_in_prompt", "same_sentence", "verdict"],
)
async def test_an_incomplete_or_mismatched_derivation_leaves_the_refusal(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    reply = await shown(tmp_path, **changed)
    assert reply.refused in {"unsupported", "off_question"}
    assert (reply.citations, reply.short_answer) == ((), "")

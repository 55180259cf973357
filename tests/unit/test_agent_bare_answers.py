"""A route that only votes quotes nothing: its answer is shown only on words that the critic copies."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.derivation import Derivation, Fact
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks, GroundedAnswer, checked
from meta_agent_rag.agent.routes import DRAFT
from meta_agent_rag.grounding.support.proposed import proposed
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.testing import ScriptedModel
from tests.loop import BIRTH_SENTENCE, settings_in
from tests.unit.test_agent_claim_critic import verdicts
from tests.unit.test_agent_grounded import FixedRetriever, answering

WHERE = "Where was Mira Holt born?"
YES = verdicts({"claim": 1, "quotes": [BIRTH_SENTENCE], "supported": True})
REMEMBERED = Derivation(
    plan=None,
    facts=(Fact(chain=0, index=0, asked="Where?", entity="Mira Holt", value="Oslo", from_memory=True),),
    answer="Oslo",
    because="",
)


async def shown(
    folder: Path,
    *assignments: str,
    judged: Mapping[str, Any] = YES,
    answer: str = "Mira Holt first saw the light in Oslo.",
    route: str = "plain_pass",
    derivation: Derivation | None = None,
) -> GroundedAnswer:
    """The checked answer if a route without quotes was elected."""
    model = ScriptedModel({**answering(), "check_claims": judged})
    settings = settings_in(folder, *(assignments or ("CLAIM_CHECK=both",)))
    async with open_engine(settings, model=model, monitor_encoder=AsyncEncoder(HashEncoder())) as engine:
        drafted = await engine.run(Task(question=WHERE, retriever=FixedRetriever(), grounded=True))
        bare = replace(drafted.rounds[drafted.chosen].draft, answer=answer, quotes=(), route=route)
        rounds = tuple(replace(one, draft=bare, derivation=derivation or one.derivation) for one in drafted.rounds)
        return await checked(engine, replace(drafted, rounds=rounds), Checks.of(settings, "films"))


async def test_a_bare_answer_is_shown_on_the_words_that_the_critic_copies(tmp_path: Path) -> None:
    reply = await shown(tmp_path)
    assert (reply.refused, reply.short_answer) == (None, "Oslo")
    assert reply.quotes == (BIRTH_SENTENCE,)
    assert [citation.title for citation in reply.citations] == ["Mira Holt"]


async def test_a_bare_answer_that_copies_a_passage_is_shown_without_the_critic(tmp_path: Path) -> None:
    reply = await shown(tmp_path, answer="Mira Holt was born in Oslo.")
    assert (reply.refused, reply.short_answer) == (None, "Oslo")
    assert BIRTH_SENTENCE in reply.quotes
    assert "check_claims" not in [row.stage for row in reply.calls]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"judged": verdicts({"claim": 1, "quotes": [], "supported": False})}, "unsupported"),
        ({"judged": verdicts({"claim": 1, "quotes": ["She was born there."], "supported": True})}, "unsupported"),
        (
            {"judged": verdicts({"claim": 1, "quotes": [BIRTH_SENTENCE], "supported": True}, answers=False)},
            "off_question",
        ),
        ({"judged": {"claims": "none"}}, "unsupported"),
        ({"answer": "Mira Holt first saw the light in Bergen in 1931."}, "unsupported"),
        ({"route": DRAFT}, "invented_quotes"),
        ({"derivation": REMEMBERED}, "invented_quotes"),
    ],
    ids=["rejected", "invented", "beside", "malformed", "other_figure", "writer", "memory"],
)
async def test_a_bare_answer_without_confirmed_words_is_refused(
    tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    reply = await shown(tmp_path, **changed)
    assert (reply.refused, reply.quotes, reply.citations) == (reason, (), ())


async def test_rules_alone_show_no_bare_answer(tmp_path: Path) -> None:
    assert (await shown(tmp_path, "CLAIM_CHECK=rules")).refused == "invented_quotes"


def test_the_sentences_proposed_complement_each_other() -> None:
    texts = {
        "Cranium": "Cranium is a party game. It sold well.",
        "Tin Bots": "Tin Bots is a board game. It has cards.",
        "Chess": "Chess is old.",
    }
    passages = [Passage(id=title, doc_id=title, title=title, text=text) for title, text in texts.items()]
    found = proposed("What are both Cranium and Tin Bots?", "Both are games.", passages)
    assert set(found) == {"Cranium is a party game.", "Tin Bots is a board game."}
    assert proposed("Who is it?", "Nobody.", passages) == ()

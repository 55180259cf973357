"""The critic on claims that the rules leave open: what it settles, and when its yes is ignored."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks, GroundedAnswer, checked
from meta_agent_rag.agent.prompting import without_marks
from meta_agent_rag.errors import AuthenticationError, CostLimitError, MetaRagError, RefusedError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import Scripted, ScriptedModel
from tests.loop import BIRTH_SENTENCE, QUESTION, settings_in
from tests.unit.test_agent_grounded import (
    BIRTH_TEXT,
    MIXED,
    PASSAGES,
    FixedRetriever,
    answering,
    assert_refused,
    grounded,
)

BOTH = "CLAIM_CHECK=both"
TWO = "Mira Holt was born in Oslo [2]. At nineteen she went to sea, bound for Bergen [2]."
SAILED = "She left the city at nineteen and sailed to Bergen with 14 crates of film."
YES: Mapping[str, Any] = {"claim": 2, "quotes": [SAILED], "supported": True}


def verdicts(*claims: Mapping[str, Any], answers: bool = True) -> Mapping[str, Any]:
    return {"claims": list(claims), "answers_question": answers}


def script(*claims: Mapping[str, Any], answer: str = TWO, answers: bool = True) -> dict[str, Scripted]:
    return {**answering(answer), "check_claims": verdicts(*claims, answers=answers)}


def supported(reply: GroundedAnswer) -> Sequence[bool]:
    return [support.supported for _, support in reply.claims]


async def test_the_critic_settles_what_the_rules_leave_open_in_one_call(tmp_path: Path) -> None:
    model = ScriptedModel(script(YES, {"claim": 17, "quotes": ["film"], "supported": True}))
    reply = await grounded(tmp_path, {}, BOTH, model=model)
    assert supported(reply) == [True, True]
    assert reply.claims[1][1].words == (SAILED,)
    (request,) = model.asked("check_claims")
    asked = request.messages[1].content
    assert "2. At nineteen she went to sea, bound for Bergen. (passage 2, 1, 3)" in asked
    assert "1. Mira Holt" not in asked  # already settled by the rules
    assert BIRTH_TEXT in without_marks(asked)
    assert [row.stage for row in reply.calls] == ["write", "second_answer", "check_claims"]
    assert (len(reply.answer.calls), reply.calls[-1].method) == (2, "check_claims")
    assert reply.calls[-1].cost_usd is not None


async def test_a_citation_contradicted_by_the_critics_quote_is_replaced(tmp_path: Path) -> None:
    stray = "Mira Holt was born in Oslo [2]. At nineteen she went to sea, bound for Bergen [4]."
    away = Passage(id="ice", doc_id="ice", title="Ice", text="Ice is frozen water, whatever the sea may be.")
    settings = settings_in(tmp_path, BOTH)
    model = ScriptedModel(script(YES, answer=stray))
    async with open_engine(settings, model=model, monitor_encoder=AsyncEncoder(HashEncoder())) as engine:
        retriever = FixedRetriever(passages=(*PASSAGES, away))
        drafted = await engine.answer(QUESTION, retriever=retriever, grounded=True)
        reply = await checked(engine, drafted, Checks.of(settings, "films"))
    assert [claim.marks for claim, _ in reply.claims] == [(2,), (2,)]
    assert "Ice" not in reply.text
    assert reply.text.count("[Mira Holt, p.7-8]") == 2


@pytest.mark.parametrize(
    "claim",
    [
        {"claim": 2, "quotes": [], "supported": False},
        {"claim": 2, "quotes": [], "supported": True},
        {"claim": 2, "quotes": ["She went to sea at nineteen."], "supported": True},
        {"claim": 2, "quotes": [BIRTH_SENTENCE], "supported": True},
        {"claim": 1, "quotes": [SAILED], "supported": True},
    ],
)
async def test_a_claim_stays_unsupported_after_a_no_a_missing_verdict_or_a_useless_quote(
    tmp_path: Path, claim: Mapping[str, Any]
) -> None:
    reply = await grounded(tmp_path, script(claim), BOTH)
    assert supported(reply) == [True, False]
    assert reply.text.endswith("[unsupported]")


async def test_a_critic_that_accepts_the_control_claim_is_ignored(tmp_path: Path) -> None:
    gullible = script(YES, {"claim": 0, "quotes": [SAILED], "supported": True})
    assert supported(await grounded(tmp_path, gullible, BOTH)) == [True, False]


async def test_the_critic_is_not_called_if_the_rules_settle_every_claim(tmp_path: Path) -> None:
    said = "Mira Holt was born in Oslo [2]. The Salt Road is a film [1]."
    for how in ("CLAIM_CHECK=rules", BOTH):
        model = ScriptedModel(answering(said, quotes=[BIRTH_SENTENCE]))
        await grounded(tmp_path, {}, how, model=model, question="Where was Mira Holt born?")
        assert model.asked("check_claims") == []
    refuted = ScriptedModel(answering("She won 7 prizes at Cannes [2].", short="7"))
    assert_refused(await grounded(tmp_path, {}, BOTH, model=refuted), "unsupported")
    assert refuted.asked("check_claims") == []


async def test_the_critic_decides_about_a_bare_answer_whose_passage_does_not_name_what_is_asked_about(
    tmp_path: Path,
) -> None:
    said = answering("Oslo [2].", quotes=[BIRTH_SENTENCE])
    asked = "Where was the maker of The Tall Ship born?"
    assert (await grounded(tmp_path, said, "CLAIM_CHECK=rules", question=asked)).refused == "unsupported"
    yes = verdicts({"claim": 1, "quotes": [BIRTH_SENTENCE], "supported": True})
    model = ScriptedModel({**said, "check_claims": yes})
    assert supported(await grounded(tmp_path, {}, BOTH, model=model, question=asked)) == [True]
    assert len(model.asked("check_claims")) == 1


@pytest.mark.parametrize(
    ("calculation", "held"),
    [
        ("(14 - 5) x 4 = 36", True),
        (["14 - 5 = 9", "9 x 4 = 36"], True),
        ("(14 + 5) x 4 = 76", False),
        ("", False),
        (None, False),
    ],
)
async def test_a_calculation_is_requested_for_figures_that_no_passage_gives(
    tmp_path: Path, calculation: object, *, held: bool
) -> None:
    said = answering("She needed 36 trips for her crates [2].", short="36", quotes=[SAILED])
    verdict = {"claim": 1, "quotes": [SAILED], "calculation": calculation, "supported": True}
    model = ScriptedModel({**said, "check_claims": verdicts(verdict)})
    asked = "If Mira Holt lost 5 crates and needed 4 trips for each, how many trips were that?"
    reply = await grounded(tmp_path, {}, BOTH, model=model, question=asked)
    (request,) = model.asked("check_claims")
    assert "calculation (if a figure" in request.messages[1].content
    assert "calculation" in str(request.json_schema)
    assert supported(reply) == [held]


async def test_no_calculation_is_requested_if_the_passages_give_every_figure(tmp_path: Path) -> None:
    model = ScriptedModel(script(YES))
    await grounded(tmp_path, {}, BOTH, model=model)
    assert "calculation" not in model.asked("check_claims")[0].messages[1].content


async def test_without_the_rules_the_critic_judges_every_claim(tmp_path: Path) -> None:
    model = ScriptedModel(script({"claim": 1, "quotes": [BIRTH_SENTENCE], "supported": True}))
    reply = await grounded(tmp_path, {}, "CLAIM_CHECK=critic", model=model)
    assert supported(reply) == [True, False]
    assert "1. Mira Holt was born in Oslo." in model.asked("check_claims")[0].messages[1].content
    assert_refused(await grounded(tmp_path, script(), "CLAIM_CHECK=critic"), "unsupported")


async def test_an_answer_to_another_question_is_refused(tmp_path: Path) -> None:
    reply = await grounded(tmp_path, script(YES, answers=False), BOTH)
    assert_refused(reply, "off_question")
    assert supported(reply) == [True, True]


@pytest.mark.parametrize("fault", [RefusedError("busy"), CostLimitError("dear"), "no JSON at all"])
async def test_the_rules_decide_if_the_critic_fails(tmp_path: Path, fault: MetaRagError | str) -> None:
    reply = await grounded(tmp_path, {**answering(MIXED), "check_claims": fault}, "CLAIM_CHECK=critic")
    assert reply.refused is None
    assert supported(reply) == [True, False]
    assert [row.stage for row in reply.calls][:3] == ["write", "second_answer", "check_claims"]


async def test_the_critic_call_carries_the_question_id_and_deadline(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, BOTH)
    model = ScriptedModel(script(YES))
    async with open_engine(settings, model=model, monitor_encoder=AsyncEncoder(HashEncoder())) as engine:
        drafted = await engine.answer(QUESTION, retriever=FixedRetriever(), grounded=True)
        checks = Checks.of(settings, "films")
        late = await checked(engine, drafted, checks, question_id="q7", deadline=time.monotonic() - 1)
        in_time = await checked(engine, drafted, checks, question_id="q7", deadline=time.monotonic() + 60)
    assert supported(late) == [True, False]
    assert late.calls == drafted.calls
    assert supported(in_time) == [True, True]
    assert in_time.calls[-1].question_id == "q7"


async def test_a_fatal_error_in_the_critic_ends_the_run(tmp_path: Path) -> None:
    stopping: dict[str, Scripted] = {**answering(TWO), "check_claims": AuthenticationError("the key is wrong")}
    with pytest.raises(AuthenticationError):
        await grounded(tmp_path, stopping, BOTH)


@pytest.mark.parametrize(("provider", "how"), [("deepseek", "both"), ("embedded", "rules")])
def test_the_default_claim_check_depends_on_the_provider(tmp_path: Path, provider: str, how: str) -> None:
    settings = Settings.load([f"LLM_PROVIDER={provider}", "DEEPSEEK_API_KEY=none", f"MARAG_DATA_DIR={tmp_path}"])
    assert Checks.of(settings, "films").claim_check == how

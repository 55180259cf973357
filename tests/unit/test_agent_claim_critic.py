"""Single claims before the critic (CLAIM_CHECK=critic): what it refutes, and where the rules stand."""

import time
from pathlib import Path

import pytest

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks, checked
from meta_agent_rag.errors import AuthenticationError, CostLimitError, MetaRagError, RefusedError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import Scripted, ScriptedModel
from tests.loop import QUESTION, settings_in
from tests.unit.test_agent_grounded import BIRTH_TEXT, MIXED, FixedRetriever, answering, assert_refused, grounded

TWO = "Mira Holt was born in Oslo [2]. She sailed to Bergen with 14 crates of film [2]."


async def test_the_critic_refutes_what_the_rules_let_pass(tmp_path: Path) -> None:
    model = ScriptedModel({**answering(TWO), "check_claims": {"unsupported": [2, 17]}})
    reply = await grounded(tmp_path, {}, "CLAIM_CHECK=critic", model=model)
    assert [support.supported for _, support in reply.claims] == [True, False]
    assert reply.text.endswith("[unsupported]")
    (request,) = model.asked("check_claims")
    assert "1. Mira Holt was born in Oslo.\n2. She sailed to Bergen" in request.messages[1].content
    assert BIRTH_TEXT in request.messages[1].content
    assert [row.stage for row in reply.calls] == ["write", "reference", "check_claims"]
    assert (len(reply.answer.calls), reply.calls[-1].method) == (2, "check_claims")
    assert reply.calls[-1].cost_usd is not None


async def test_the_critic_may_refute_everything_and_restores_nothing(tmp_path: Path) -> None:
    script = {**answering(TWO), "check_claims": {"unsupported": [1, 2]}}
    assert_refused(reply := await grounded(tmp_path, script, "CLAIM_CHECK=critic"), "unsupported")
    assert len(reply.calls) == 3
    lenient: dict[str, Scripted] = {**answering(MIXED), "check_claims": {"unsupported": []}}
    kept = await grounded(tmp_path, lenient, "CLAIM_CHECK=critic")
    assert [support.supported for _, support in kept.claims] == [True, False]


async def test_the_critic_is_asked_only_on_request_and_only_where_something_is_left(tmp_path: Path) -> None:
    rules = ScriptedModel(answering(TWO))
    await grounded(tmp_path, {}, model=rules)
    assert rules.asked("check_claims") == []
    nothing = ScriptedModel(answering("She won 7 prizes at Cannes [2].", short="7"))
    assert_refused(await grounded(tmp_path, {}, "CLAIM_CHECK=critic", model=nothing), "unsupported")
    assert nothing.asked("check_claims") == []


@pytest.mark.parametrize("fault", [RefusedError("busy"), CostLimitError("dear"), "no JSON at all"])
async def test_where_the_critic_fails_the_rules_stand(tmp_path: Path, fault: MetaRagError | str) -> None:
    script: dict[str, Scripted] = {**answering(MIXED), "check_claims": fault}
    reply = await grounded(tmp_path, script, "CLAIM_CHECK=critic")
    assert reply.refused is None
    assert [support.supported for _, support in reply.claims] == [True, False]
    assert [row.stage for row in reply.calls][:3] == ["write", "reference", "check_claims"]


async def test_the_critic_has_the_questions_id_and_its_deadline(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "CLAIM_CHECK=critic")
    model = ScriptedModel({**answering(TWO), "check_claims": {"unsupported": [2]}})
    async with open_engine(settings, transport=model, monitor_encoder=AsyncEncoder(HashEncoder())) as engine:
        drafted = await engine.answer(QUESTION, retriever=FixedRetriever(), grounded=True)
        checks = Checks.of(settings, "films")
        late = await checked(engine, drafted, checks, question_id="q7", deadline=time.monotonic() - 1)
        in_time = await checked(engine, drafted, checks, question_id="q7", deadline=time.monotonic() + 60)
    assert [support.supported for _, support in late.claims] == [True, True]
    assert late.calls == drafted.calls
    assert [support.supported for _, support in in_time.claims] == [True, False]
    assert in_time.calls[-1].question_id == "q7"


async def test_a_critic_that_must_stop_the_run_does(tmp_path: Path) -> None:
    script: dict[str, Scripted] = {**answering(), "check_claims": AuthenticationError("the key is wrong")}
    with pytest.raises(AuthenticationError, match="the key is wrong"):
        await grounded(tmp_path, script, "CLAIM_CHECK=critic")

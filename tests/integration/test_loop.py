"""The whole loop with a scripted model: which calls are made, and the effect of each reply."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.context import Task
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.errors import ContextWindowError, RefusedError, SettingsError
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import ScriptedModel
from tests.loop import (
    BIRTH,
    BIRTH_SENTENCE,
    EVIDENCE,
    FILM,
    FILM_SENTENCE,
    QUESTION,
    WRONG,
    FakeRetriever,
    ask,
    critique,
    draft,
    second_answer,
    settings_in,
    user_text,
)


async def test_all_stages_share_one_prefix(tmp_path: Path) -> None:
    run = await ask(tmp_path, WRONG)
    systems = {request.messages[0].content for request in run.model.requests}
    assert len(systems) == 1
    prefixes = {user_text(request).partition(f"Question: {QUESTION}")[0] for request in run.model.requests}
    assert len(prefixes) == 1
    (prefix,) = prefixes
    assert FILM_SENTENCE in prefix
    assert BIRTH_SENTENCE in prefix
    assert set(run.stages) == {"write", "second_answer", "evaluate", "rewrite"}


async def test_the_second_answer_is_kept_while_the_evidence_is_unchanged(tmp_path: Path) -> None:
    script = {**WRONG, "rewrite": [draft("Rome"), draft("Lyon"), draft("Oslo")]}
    run = await ask(tmp_path, script)
    assert len(run.answer.rounds) == 4
    assert run.stages.count("second_answer") == 1
    assert {round_.second_answer for round_ in run.answer.rounds} == {run.answer.rounds[0].second_answer}


async def test_new_evidence_gets_a_new_second_answer(tmp_path: Path) -> None:
    retriever = FakeRetriever({QUESTION: [FILM], "birthplace of Mira Holt": [BIRTH]})
    script = {
        **WRONG,
        "second_answer": [second_answer("Rome"), second_answer("Oslo")],
        "evaluate": critique("insufficient_knowledge", queries=["birthplace of Mira Holt"]),
    }
    run = await ask(tmp_path, script, retriever=retriever)
    assert run.stages == ["write", "second_answer", "evaluate", "rewrite", "second_answer"]
    seconds = [round_.second_answer and round_.second_answer.short_answer for round_ in run.answer.rounds]
    assert seconds == ["Rome", "Oslo"]
    assert run.answer.stop_reason == "satisfied"


@pytest.mark.parametrize("failure", ["prose", RefusedError("no"), ContextWindowError("long")])
async def test_a_failed_second_answer_does_not_count_as_agreement(tmp_path: Path, failure: Any) -> None:
    script = {**WRONG, "write": draft("Oslo"), "second_answer": failure, "evaluate": critique("none")}
    run = await ask(tmp_path, script)
    (only,) = run.answer.rounds
    assert not only.satisfied
    assert only.second_answer is not None
    assert only.second_answer.error
    assert only.signals is not None
    assert (only.signals.similarity, only.signals.agreement) == (None, None)
    assert run.answer.stop_reason == "critic_satisfied"


async def test_a_custom_prompt_reaches_the_model(tmp_path: Path) -> None:
    own = tmp_path / "prompts"
    own.mkdir()
    (own / "write.yaml").write_text("instruction: Answer in the manner of a pirate. $mode\n", encoding="utf-8")
    run = await ask(tmp_path, WRONG, f"PROMPTS_DIR={own}")
    assert "manner of a pirate" in run.prompt("write")
    assert "manner of a pirate" not in run.prompt("rewrite")
    with pytest.raises(SettingsError):
        await ask(tmp_path, WRONG, "PROMPT_DIR=misspelt")


async def test_concurrent_questions_are_isolated(tmp_path: Path) -> None:
    def write(request: Request) -> dict[str, Any]:
        return {**draft("Rome" if "Rome" in user_text(request) else "Oslo"), "steps": []}

    model = ScriptedModel({**WRONG, "write": write, "second_answer": write}, seconds=0.001)
    encoder = AsyncEncoder(HashEncoder())
    async with open_engine(settings_in(tmp_path), model=model, monitor_encoder=encoder) as engine:
        asked = [f"Question {n}, {'Rome' if n % 2 else 'Oslo'}?" for n in range(12)]
        answers = await asyncio.gather(*(engine.run(Task(question=text, evidence=EVIDENCE, id=text)) for text in asked))
    assert [answer.question for answer in answers] == asked
    for number, answer in enumerate(answers):
        assert answer.short_answer == ("Rome" if number % 2 else "Oslo")
        assert {row.question_id for row in answer.calls} == {answer.question}
        assert len(answer.calls) == 2

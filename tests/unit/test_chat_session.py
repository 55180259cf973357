"""Turns of a conversation: which calls are made, what is remembered, and what an interruption leaves."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from meta_agent_rag.chat.history import History
from meta_agent_rag.errors import InputError, RefusedError
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.testing.scripted import Line
from tests.talk import FIRST, SCRIPT, FakeAnswerer, conversation, history_of, means, say


@pytest.mark.parametrize("fault", [RefusedError("busy"), asyncio.CancelledError(), ValueError("unforeseen")])
async def test_a_failed_turn_is_not_remembered(tmp_path: Path, fault: BaseException) -> None:
    answerer = FakeAnswerer()
    async with conversation(tmp_path, ScriptedModel(SCRIPT), answerer=answerer) as talk:
        await say(talk, FIRST)
        before = talk.history
        answerer.fault = fault
        with pytest.raises(type(fault)):
            await say(talk, "Who designed the Pennant Bridge?")
        assert talk.history is before
        answerer.fault = None
        await say(talk, "Who designed the Pennant Bridge?")
        assert talk.history.turns == 2


def signalling(event: asyncio.Event, line: Line) -> Callable[[Request], Line]:
    """A script that signals when it is called."""

    def asked(request: Request) -> Line:
        event.set()
        return line

    return asked


async def cancelled_once(event: asyncio.Event, work: Coroutine[object, object, object]) -> None:
    running = asyncio.create_task(work)
    await asyncio.wait_for(event.wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_an_interruption_leaves_the_history_unchanged(tmp_path: Path) -> None:
    asked = asyncio.Event()
    model = ScriptedModel({"rewrite_query": signalling(asked, means("Where was Mira Holt born?"))}, seconds=30.0)
    async with conversation(tmp_path, model, history=history_of("Mira Holt")) as talk:
        before = talk.history
        await cancelled_once(asked, say(talk, "Where was she born?"))
        assert talk.history is before
        model.seconds = 0.0
        await say(talk, "Where was she born?")
        assert talk.history.exchanges[-1].standalone == "Where was Mira Holt born?"


async def test_an_interrupted_fold_keeps_the_answered_turn(tmp_path: Path) -> None:
    asked = asyncio.Event()
    model = ScriptedModel({"summarize": signalling(asked, "Mira Holt.")})
    async with conversation(tmp_path, model, history=history_of(*"abcdefg")) as talk:
        await talk.reply("Who designed the Pennant Bridge?")
        model.seconds = 30.0
        before = talk.history
        await cancelled_once(asked, talk.settle())
        assert talk.history is before
        assert before.turns == len(before.exchanges) == 8
        model.seconds = 0.0
        assert await talk.settle() == ()
        assert talk.calls[-1].stage == "summarize"
        assert len(talk.history.exchanges) == 4


@pytest.mark.parametrize("message", ["", " \n ", "Who \ud800?"])
async def test_an_empty_or_invalid_message_is_rejected(tmp_path: Path, message: str) -> None:
    async with conversation(tmp_path, ScriptedModel()) as talk:
        with pytest.raises(InputError, match=r"write a question|type it again"):
            await say(talk, message)
    assert talk.history == History()


@pytest.mark.parametrize("request_", ["Say that in simpler words.", "In German please", "shorter"])
async def test_a_restated_answer_uses_the_same_question_and_documents(tmp_path: Path, request_: str) -> None:
    model, answerer = ScriptedModel(SCRIPT), FakeAnswerer()
    async with conversation(tmp_path, model, answerer=answerer) as talk:
        await say(talk, FIRST)
        turn = await say(talk, request_)
        assert turn.reading.intent == "change_last_answer"
        await say(talk, "Longer, please.")
    assert answerer.asked[1:] == [(request_, FIRST), ("Longer, please.", FIRST)]
    assert answerer.before[0] == ""
    assert answerer.before[1] == f"User: {FIRST}\nAssistant: She was born in Oslo [1]."
    assert f"User: {request_}\n" in answerer.before[2], "in the user's own words"
    assert model.asked("rewrite_query") == []

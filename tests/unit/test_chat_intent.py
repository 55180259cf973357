"""What a message is taken for: by the English list, by one call in any language, or by the message itself."""

from pathlib import Path

import pytest

from meta_agent_rag.chat.intent import Interpretation, interpreted, read_offline
from meta_agent_rag.errors import AuthenticationError, RefusedError
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in
from tests.talk import FIRST, FakeAnswerer, conversation, history_of, means, say

BEFORE = history_of("In Oslo.")


async def read(folder: Path, message: str, model: ScriptedModel, *assignments: str) -> Interpretation:
    async with open_language_model(settings_in(folder, *assignments), model=model) as opened:
        return await interpreted(message, BEFORE, opened.session("turn", method="test", deadline=None))


@pytest.mark.parametrize(
    ("message", "intent"),
    [
        ("Perfect, thank you very much for the explanation.", "small_talk"),
        ("Write me a poem about the sea.", "small_talk"),
        ("What can you do?", "small_talk"),
        ("What have we discussed so far?", "about_conversation"),
        ("What was my first question?", "about_conversation"),
        ("Which documents do you have?", "about_documents"),
        ("In German, please.", "change_last_answer"),
        ("Thanks, and who built it?", "question"),
        ("Which documents did the court request?", "question"),
        ("What did we learn about the tides?", "question"),
        ("In Paris?", "question"),
        ("What's the weather station made of?", "question"),
        ("Which documents are in dispute?", "question"),
        ("What sources are available to fund the bridge?", "question"),
        ("...", "question"),
    ],
)
def test_the_english_list_reads_whole_messages_alone(message: str, intent: str) -> None:
    assert read_offline(message, BEFORE).intent == intent


@pytest.mark.parametrize(
    ("message", "reply", "expected"),
    [
        ("When did she die?", means("When did Mira Holt die?"), ("question", "When did Mira Holt die?", True)),
        ("Who built the Eiffel Tower?", means("Who built the Eiffel Tower"), ("question", None, False)),
        ("Wann starb sie?", means("Wann starb Mira Holt?"), ("question", "Wann starb Mira Holt?", True)),
        ("Vielen Dank, das hilft!", means("Vielen Dank!", "small_talk"), ("small_talk", None, False)),
        ("De quoi avons-nous parlé ?", means("", "about_conversation"), ("about_conversation", None, False)),
        ("Plus court.", means("", "change_last_answer"), ("change_last_answer", "Standalone 1?", True)),
        ("When did she die?", means(""), ("question", None, False)),
        ("When did she die?", means("word " * 40), ("question", None, False)),
    ],
)
async def test_a_follow_up_is_read_in_one_call(
    tmp_path: Path, message: str, reply: dict[str, object], expected: tuple[str, str | None, bool]
) -> None:
    model = ScriptedModel({"rewrite_query": reply})
    found = await read(tmp_path, message, model)
    intent, standalone, refers_back = expected
    assert (found.intent, found.refers_back) == (intent, refers_back)
    if intent in {"question", "change_last_answer"}:
        assert found.standalone.rstrip("?") == (standalone or message).rstrip("?")
    (request,) = model.requests
    assert request.model == "deepseek-v4-flash"
    assert f"<message>{message}</message>" in request.messages[-1].content
    assert "Assistant: In Oslo." in request.messages[-1].content


async def test_a_failed_call_leaves_the_message_as_it_is(tmp_path: Path) -> None:
    for reply in (RefusedError("busy"), "I would rather answer."):
        found = await read(tmp_path, "When did she die?", ScriptedModel({"rewrite_query": reply}))
        assert (found.intent, found.standalone, bool(found.fault)) == ("question", "When did she die?", True)
    with pytest.raises(AuthenticationError):
        await read(tmp_path, "When did she die?", ScriptedModel({"rewrite_query": AuthenticationError("no")}))


async def test_the_packaged_model_is_not_asked(tmp_path: Path) -> None:
    model = ScriptedModel({})
    found = await read(tmp_path, "When did she die?", model, "LLM_PROVIDER=embedded")
    assert (found.standalone, found.refers_back) == ("Question 1? When did she die?", True)
    alone = await read(tmp_path, "Who designed the Pennant Bridge?", model, "LLM_PROVIDER=embedded")
    assert (alone.standalone, alone.refers_back) == ("Who designed the Pennant Bridge?", False)
    assert model.requests == []


async def test_what_was_discussed_lists_each_question_once_in_the_users_words(tmp_path: Path) -> None:
    model = ScriptedModel({"rewrite_query": means(FIRST)})
    async with conversation(tmp_path, model, answerer=FakeAnswerer()) as talk:
        for message in (FIRST, "And where exactly?", "Where, please?", FIRST):
            await say(talk, message)
        turn = await say(talk, "What have we discussed?")
    assert turn.reply.text.splitlines()[1:] == [f"1. {FIRST}", "2. And where exactly?", "3. Where, please?"]
    assert talk.history.turns == 4

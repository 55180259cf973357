"""What LangChain's client for OpenAI does unless it is told otherwise, and replies without an answer."""

from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from meta_agent_rag.errors import RefusedError, StructuredOutputError, WithheldError
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import ServerReply, always
from tests.loopback import ASK, GOOD, Answer, Serve, opened

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 60}


def choice(finish_reason: str = "stop", **message: Any) -> ServerReply:
    body = {"choices": [{"index": 0, "finish_reason": finish_reason, "message": message}], "usage": USAGE}
    return ServerReply(body={"model": "deepseek-v4-flash-0901", **body})


@pytest.mark.parametrize(
    ("reply", "said", "calls"),
    [
        (choice(content=None, refusal="I cannot help with that."), "refused to answer; rephrase the question", 1),
        (choice("content_filter", content="Goe"), "stopped by its provider's content filter", 1),
        (choice(content="", reasoning_content="Hm, who wrote it?"), "reasoned and sent no reply; switch", 2),
        (choice(content=""), "sent an empty reply; try again", 2),
    ],
    ids=["refusal", "filter", "reasoning", "empty"],
)
async def test_a_reply_without_an_answer_says_which_of_four_it_is(
    reply: ServerReply, said: str, calls: int, serve: Serve
) -> None:
    server = serve(always(reply))
    async with opened(server, response_cache=True) as model:
        session = model.session()
        with pytest.raises(WithheldError, match=f"In stage 'write', the model 'deepseek-v4-flash' .*{said}"):
            await session.ainvoke("write", ASK, Answer)
        assert len(server.bodies) == calls
        with pytest.raises(WithheldError, match=said):
            await session.areply("write", ASK)
        assert len(server.bodies) == calls + 1, "none of these replies is kept in the cache"
    assert {row.answered_by for row in session.rows} == {"deepseek-v4-flash-0901"}
    assert all(row.cost_usd for row in session.rows), "they are paid for"


async def test_a_cut_json_reply_keeps_its_usage(serve: Serve) -> None:
    """In `response_format` proper, the client raises an error of its own after the tokens are spent."""
    server = serve(always(ServerReply(text='{"answer": "Goe', finish_reason="length")))
    async with opened(server) as model:
        session = model.session()
        with pytest.raises(StructuredOutputError, match=r"cut at its limit of 700 tokens; raise it with STAGE_TOKENS"):
            await session.ainvoke("write", ASK, Answer)
    assert [(row.prompt_tokens, row.finish_reason, row.error) for row in session.rows] == [(100, "length", None)] * 2


async def test_of_a_model_that_is_a_file_only_its_name_is_kept(serve: Serve) -> None:
    body = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "Goethe"}}], "usage": USAGE}
    async with opened(serve(always(ServerReply(body={"model": "/home/ada/tiny.gguf", **body})))) as model:
        session = model.session()
        await session.areply("write", ASK)
    assert {row.answered_by for row in session.rows} == {"tiny.gguf"}


async def test_the_body_of_the_callers_object_and_of_the_call_are_both_sent(serve: Serve) -> None:
    server = serve(always(GOOD))
    chat = ChatOpenAI(
        model="m", base_url=server.base_url, api_key=SecretStr("k"), extra_body={"top_k": 5, "temperature": 1.0}
    )
    async with open_language_model(Settings.load(response_cache=False), model=chat) as model:
        await model.session().ainvoke("write", ASK, Answer)
    (body,) = server.bodies
    assert (body["top_k"], body["temperature"], body["max_completion_tokens"]) == (5, 0.0, 700)
    assert chat.extra_body == {"top_k": 5, "temperature": 1.0}, "the object is left as it was"


async def test_reasoning_and_cache_hits_are_kept_in_langchains_message(serve: Serve) -> None:
    server = serve(always(choice(content="Goethe", reasoning_content="It was he.")))
    async with opened(server) as model:
        connection = await model.connections.to(model.choice.tiers["flash"])
        message = await (await connection.chat()).ainvoke("Who?")
    assert message.additional_kwargs["reasoning_content"] == "It was he."
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_token_details"]["cache_read"] == 60


async def test_a_streamed_reply_has_its_usage(serve: Serve) -> None:
    """As LangGraph makes a call for `stream_mode="messages"`; at an address of its own, usage must be asked for."""
    server = serve(always(GOOD))
    async with opened(server) as model:
        client = await (await model.connections.to(model.choice.tiers["flash"])).chat()
        pieces = [piece async for piece in client.astream("Who?")]
    assert "".join(str(piece.text) for piece in pieces) == GOOD.text
    assert [piece.usage_metadata["input_tokens"] for piece in pieces if piece.usage_metadata] == [100]


async def test_a_key_goes_to_no_other_server(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-provider")
    elsewhere = serve(always(GOOD))
    moved = ServerReply(status=307, headers={"location": f"{elsewhere.base_url}/chat/completions"})
    server = serve(always(moved))
    async with opened(server) as model:
        with pytest.raises(RefusedError, match="rejected the call with 307"):
            await model.session().areply("write", ASK)
    assert elsewhere.bodies == []
    async with opened(server, deepseek_api_key=None, llm_provider="compatible", flash_model="m") as model:
        client = await (await model.connections.to(model.choice.tiers["flash"])).chat()
        assert "sk-of-another-provider" not in str(client.model_dump()["openai_api_key"].get_secret_value())


async def test_only_openai_is_sent_what_belongs_to_an_account_there(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "of-openai")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "of-openai")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-gateway: of-openai")
    server = serve(always(GOOD))
    async with opened(server) as model:
        await model.session().ainvoke("write", ASK, Answer)
    (sent,) = server.headers
    assert "of-openai" not in str(sent)
    assert sent["user-agent"]

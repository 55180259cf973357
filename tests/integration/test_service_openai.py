"""The OpenAI-compatible endpoints, called with the official client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from meta_agent_rag.testing import ScriptedModel
from tests.integration.test_service_deadline import TIMED_OUT, slow_at
from tests.loop import BIRTH_SENTENCE, QUESTION
from tests.service import SCRIPT, Running, running

ASKED: Any = [{"role": "user", "content": QUESTION}]
ANSWER = "Mira Holt was born in Oslo [Birth]."
IMPOSSIBLE: list[tuple[str, dict[str, Any], str | None]] = [
    ("two answers", {"n": 2}, "n"),
    ("tools", {"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    ("unknown", {"extra_body": {"system_prompt": "Obey."}}, "system_prompt"),
    ("options of no stream", {"stream_options": {"include_usage": True}}, "stream_options"),
    ("an image", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, None),
    ("nothing", {"messages": []}, "messages"),
    ("blank", {"messages": [{"role": "user", "content": " \n"}]}, "messages"),
    ("long", {"messages": [{"role": "user", "content": "x" * 1001}]}, "messages"),
    ("no question", {"messages": [*ASKED, {"role": "assistant", "content": "Oslo."}]}, "messages"),
]


@asynccontextmanager
async def client_of(service: Running, token: str | None = None) -> AsyncIterator[openai.AsyncOpenAI]:
    transport = httpx2.ASGITransport(service.app, raise_app_exceptions=False)
    async with openai.AsyncOpenAI(
        api_key=token or service.token,
        base_url="http://service/v1",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    ) as client:
        yield client


async def test_the_client_can_list_models_ask_and_stream(tmp_path: Path) -> None:
    model = ScriptedModel({**SCRIPT, "rewrite_query": {"intent": "question", "standalone": "When was Mira Holt born?"}})
    async with running(tmp_path, model=model) as service, client_of(service) as client:
        assert [found.id async for found in client.models.list()] == ["films"]
        assert (await client.models.retrieve("films")).owned_by == "meta-agent-rag"

        parts: Any = [{"type": "text", "text": QUESTION[:10]}, {"type": "text", "text": QUESTION[10:]}]
        messages: Any = [{"role": "system", "content": "Obey the pirate."}, {"role": "user", "content": parts}]
        done = await client.chat.completions.create(model="films", messages=messages, temperature=0.1, max_tokens=5)
        assert done.choices[0].message.content == ANSWER
        assert done.choices[0].finish_reason == "stop"
        assert done.usage is not None
        assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens > 0
        assert done.usage.prompt_tokens_details is not None
        assert done.usage.prompt_tokens_details.cached_tokens is not None
        grounding = (done.model_extra or {})["grounding"]
        assert [citation["snippet"] for citation in grounding["citations"]] == [BIRTH_SENTENCE]
        assert done.id == f"chatcmpl-{grounding['query_id']}"
        assert not [1 for request in model.requests if any("pirate" in one.content for one in request.messages)]
        record = (await service.client.get(f"/v1/queries/{grounding['query_id']}")).json()
        assert (record["endpoint"], record["record"]["question"]) == ("/v1/chat/completions", QUESTION)

        stream = await client.chat.completions.create(
            model="films", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
        assert text == ANSWER
        assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]][-1] == "stop"
        assert (chunks[-2].model_extra or {})["grounding"]["short_answer"] == "Oslo"
        assert chunks[-1].choices == []
        assert chunks[-1].usage is not None
        raw = await service.client.post(
            "/v1/chat/completions", json={"model": "films", "messages": ASKED, "stream": True}
        )
        assert raw.text.endswith("data: [DONE]\n\n")
        assert '"usage"' not in raw.text

        assert not model.asked("rewrite_query"), "no earlier question in the session"
        follow_up: Any = [*ASKED, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": "And when?"}]
        await client.chat.completions.create(model="films", messages=follow_up)
        (asked,) = model.asked("rewrite_query")
        assert "born in Oslo" in asked.messages[-1].content


async def test_rejected_requests_raise_the_client_errors(tmp_path: Path) -> None:
    async with running(tmp_path) as service, client_of(service) as client:
        for label, fields, param in IMPOSSIBLE:
            with pytest.raises(openai.BadRequestError) as refused:
                await client.chat.completions.create(**{"model": "films", "messages": ASKED, **fields})
            reported = refused.value.body
            assert isinstance(reported, dict)
            assert set(reported) == {"message", "type", "param", "code"}, label
            assert reported["type"] == "invalid_request_error", label
            assert param is None or param in str(reported["param"]), (label, reported)
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.chat.completions.create(model="gpt-9", messages=ASKED)
        assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-9")
        async with client_of(service, "sk-wrong") as stranger:
            with pytest.raises(openai.AuthenticationError) as wrong:
                await stranger.models.list()
            assert wrong.value.code == "invalid_api_key"
        async with client_of(service, await service.token_for("uploads", "ingest")) as other:
            with pytest.raises(openai.PermissionDeniedError):
                await other.chat.completions.create(model="films", messages=ASKED)
        assert service.model.requests == [], "the model was not called"


async def test_timeouts_and_rate_limits_raise_the_client_errors(tmp_path: Path) -> None:
    limits = ("SERVICE_DEADLINE_SECONDS=0.6", "SERVICE_RATE_PER_MINUTE=2")
    async with running(tmp_path, *limits, model=slow_at("write")) as service, client_of(service) as client:
        for streams in (False, True):
            with pytest.raises(openai.InternalServerError) as late:
                await client.chat.completions.create(model="films", messages=ASKED, stream=streams)
            assert (late.value.status_code, late.value.message.count(TIMED_OUT)) == (504, 1)
            assert late.value.response.headers["x-should-retry"] == "false"
        with pytest.raises(openai.RateLimitError) as often:
            await client.chat.completions.create(model="films", messages=ASKED)
        assert often.value.code == "rate_limit_exceeded"
        assert 1 <= int(often.value.response.headers["retry-after"]) <= 60

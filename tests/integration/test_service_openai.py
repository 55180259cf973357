"""The OpenAI-compatible endpoints, called with the official client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from meta_agent_rag.testing import ScriptedModel
from tests.integration.test_service_audit import rows_in
from tests.integration.test_service_limits import TIMED_OUT, Hanging
from tests.loop import BIRTH_SENTENCE, QUESTION
from tests.service import SCRIPT, Running, running

ASKED: Any = [{"role": "user", "content": QUESTION}]
ANSWER = "Mira Holt was born in Oslo [Birth]."
IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"n": 2}, "'n'"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "'tools'"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "'messages.0"),
    ({"messages": []}, "'messages'"),
    ({"messages": [{"role": "user", "content": " \n"}]}, "use 1 to 1000"),
    ({"messages": [*ASKED, {"role": "assistant", "content": "Oslo."}]}, "end with the question"),
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
        parts: Any = [{"type": "text", "text": QUESTION[:10]}, {"type": "text", "text": QUESTION[10:]}]
        messages: Any = [{"role": "system", "content": "Obey the pirate."}, {"role": "user", "content": parts}]
        done = await client.chat.completions.create(model="films", messages=messages, temperature=0.1, max_tokens=5)
        assert (done.choices[0].message.content, done.choices[0].finish_reason) == (ANSWER, "stop")
        assert done.usage is not None
        assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens > 0
        grounding = (done.model_extra or {})["grounding"]
        assert [citation["snippet"] for citation in grounding["citations"]] == [BIRTH_SENTENCE]
        assert not [1 for request in model.requests if any("pirate" in one.content for one in request.messages)]
        stream = await client.chat.completions.create(model="films", messages=ASKED, stream=True)
        chunks = [chunk async for chunk in stream]
        assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == ANSWER
        assert (chunks[-1].model_extra or {})["grounding"]["short_answer"] == "Oslo"
        assert chunks[-1].usage is not None
        assert not model.asked("rewrite_query"), "no earlier question in the session"
        follow_up: Any = [*ASKED, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": "And when?"}]
        await client.chat.completions.create(model="films", messages=follow_up, stream_options=None)
        (asked,) = model.asked("rewrite_query")
        assert "born in Oslo" in asked.messages[-1].content
        tools: Any = [*ASKED, {"role": "assistant", "content": None}, *ASKED]
        assert (await client.chat.completions.create(model="films", messages=tools)).choices[0].message.content


async def test_rejected_requests_raise_the_client_errors(tmp_path: Path) -> None:
    limits = ("SERVICE_DEADLINE_SECONDS=0.6", "SERVICE_RATE_PER_MINUTE=9")
    async with running(tmp_path, *limits, model=Hanging(script=SCRIPT)) as service, client_of(service) as client:
        for fields, said in IMPOSSIBLE:
            with pytest.raises(openai.UnprocessableEntityError, match=said):
                await client.chat.completions.create(**{"model": "films", "messages": ASKED, **fields})
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="gpt-9", messages=ASKED)
        (refused,) = [row for row in await rows_in(tmp_path) if row["status"] == 404]
        assert refused["question"] == QUESTION
        async with client_of(service, "sk-wrong") as stranger:
            with pytest.raises(openai.AuthenticationError):
                await stranger.models.list()
        assert service.model.requests == [], "the model was not called"
        for streams in (False, True):
            with pytest.raises(openai.InternalServerError, match=TIMED_OUT) as late:
                await client.chat.completions.create(model="films", messages=ASKED, stream=streams)
            assert (late.value.status_code, late.value.response.headers["x-should-retry"]) == (504, "false")
        with pytest.raises(openai.RateLimitError) as often:
            await client.chat.completions.create(model="films", messages=ASKED)
        assert 1 <= int(often.value.response.headers["retry-after"]) <= 60

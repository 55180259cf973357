"""The model client when the server refuses, fails, hangs or is unreachable."""

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from meta_agent_rag.errors import (
    AuthenticationError,
    BalanceError,
    ContextWindowError,
    ModelError,
    RefusedError,
    UnknownModelError,
    UnreachableError,
)
from meta_agent_rag.llm.ledger import total
from meta_agent_rag.testing.server import ServerReply, always
from tests.loopback import ASK, GOOD, SECRET, Answer, Serve, opened

HANG = ServerReply(text="late", seconds=60.0)


WORDS_OF_DEEPSEEK = {
    "error": {
        "message": "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_request_error",
    }
}
NO_QUOTA = {"error": {"message": "Used up.", "type": "insufficient_quota", "code": "insufficient_quota"}}
OF_OPENAI = {"error": {"message": "Too long.", "type": "invalid_request_error", "code": "context_length_exceeded"}}
OF_LLAMA_CPP = {"error": {"message": "Too long.", "type": "exceed_context_size_error", "code": 400}}
OF_A_SCHEMA = {"error": {"message": "Unknown parameter 'heat'.", "type": "invalid_request_error", "code": None}}


@pytest.mark.parametrize(
    ("reply", "kind", "said", "stops"),
    [
        (ServerReply(status=401), AuthenticationError, "rejected the key (401); check the key", True),
        (ServerReply(status=403), AuthenticationError, "rejected the key (403)", True),
        (ServerReply(status=402), BalanceError, "(402); top it up, then resume (`marag balance`).", True),
        (ServerReply(status=429, body=NO_QUOTA), BalanceError, "no balance left (429); top it up", True),
        (ServerReply(status=404), UnknownModelError, "does not know 'deepseek-v4-flash' or the path (404)", True),
        (ServerReply(status=400, body=WORDS_OF_DEEPSEEK), ContextWindowError, "lower EVIDENCE_TOKENS", False),
        (ServerReply(status=400, body=OF_OPENAI), ContextWindowError, "context window of 'deepseek-v4-flash'", False),
        (ServerReply(status=400, body=OF_LLAMA_CPP), ContextWindowError, "lower EVIDENCE_TOKENS", False),
        (ServerReply(status=400, body=OF_A_SCHEMA), RefusedError, "with 400: Unknown parameter", False),
        (ServerReply(status=422, body={}), RefusedError, "rejected the call with 422", False),
    ],
    ids=lambda value: str(value.status) if isinstance(value, ServerReply) else None,
)
async def test_refusals_are_not_retried_and_suggest_a_remedy(
    reply: ServerReply, kind: type[ModelError], said: str, stops: bool, serve: Serve
) -> None:
    server = serve(always(reply))
    async with opened(server, cost_limit_usd=1.0) as model:
        session = model.session()
        with pytest.raises(kind) as caught:
            await session.ainvoke("write", ASK, Answer)
        assert model.budget.paid_usd == model.budget.reserved_usd == 0
    assert type(caught.value) is kind
    assert said in str(caught.value)
    assert server.base_url in str(caught.value)
    assert caught.value.stops_run is stops
    assert SECRET not in f"{caught.value} {caught.value!r} {session.rows}"
    assert len(server.bodies) == 1
    assert [(row.error, row.cost_usd, row.prompt_tokens) for row in session.rows] == [(kind.__name__, None, None)]


async def test_an_unreachable_server_is_reported(serve: Serve) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        async with opened(url, llm_max_retries=0) as model:
            session = model.session()
            with pytest.raises(UnreachableError, match=f"DeepSeek at {url} does not respond; check that it is running"):
                await session.areply("write", ASK)
    assert [row.error for row in session.rows] == ["UnreachableError"]


@pytest.mark.slow
async def test_a_hanging_server_is_timed_out(serve: Serve) -> None:
    server = serve(always(HANG))
    started = time.monotonic()
    async with opened(server, llm_timeout_seconds=1.0, cost_limit_usd=1.0) as model:
        session = model.session()
        with pytest.raises(RefusedError, match=r"did not answer within 1 s; raise LLM_TIMEOUT_SECONDS"):
            await session.areply("write", ASK)
        assert model.budget.reserved_usd == 0
        assert model.budget.paid_usd > 0  # the server may bill what it was sent
    assert 3 <= time.monotonic() - started < 30
    assert [row.error for row in session.rows] == ["timeout"] * 3
    assert len(server.bodies) <= 3
    assert all(row.latency_s >= 1 for row in session.rows)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Unsupported parameter: 'temperature' is not supported with this model.", "param": "temperature"},
        {"message": "temperature: Extra inputs are not permitted", "type": "invalid_request_error"},
        {"message": "Unrecognized request argument supplied: temperature", "param": None},
    ],
    ids=["openai", "pydantic", "older"],
)
async def test_a_parameter_that_the_endpoint_rejects_is_omitted(error: dict[str, Any], serve: Serve) -> None:
    def picky(body: dict[str, Any]) -> ServerReply:
        return ServerReply(status=400, body={"error": error}) if "temperature" in body else GOOD

    server = serve(picky)
    async with opened(server) as model:
        session = model.session()
        for _ in range(2):
            assert await session.ainvoke("write", ASK, Answer) == Answer(answer="Goethe")
    assert ["temperature" in body for body in server.bodies] == [True, False, False]
    assert all(body["max_tokens"] for body in server.bodies)


async def test_a_parameter_is_omitted_once_however_often_the_endpoint_names_it(serve: Serve) -> None:
    error = {"message": "Unsupported parameter: temperature", "param": "temperature"}
    server = serve(always(ServerReply(status=400, body={"error": error})))
    async with opened(server) as model:
        with pytest.raises(ModelError, match="Unsupported parameter: temperature"):
            await model.session().ainvoke("write", ASK, Answer)
    assert len(server.bodies) == 2


async def test_a_cancelled_call_is_recorded(serve: Serve) -> None:
    arrived = threading.Event()

    def behaviour(body: dict[str, Any]) -> ServerReply:
        arrived.set()
        return HANG

    async with opened(serve(behaviour), cost_limit_usd=1.0) as model:
        session = model.session()
        task = asyncio.create_task(session.areply("write", ASK))
        assert await asyncio.to_thread(arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [row.error for row in session.rows] == ["cancelled"]
        assert model.budget.reserved_usd == 0
        assert model.budget.paid_usd > 0
        assert total(session.rows).failed_calls == 1

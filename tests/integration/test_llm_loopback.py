"""The door to a model, over a real connection to a server that misbehaves on request."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import openai  # noqa: F401  # its import takes longer than the time limits below
import pytest
from pydantic import BaseModel

from meta_agent_rag.errors import (
    AuthenticationError,
    BalanceError,
    ContextWindowError,
    CostLimitError,
    DeadlineError,
    InputError,
    ModelError,
    RefusedError,
    SettingsError,
    StructuredOutputError,
    UnpricedModelError,
    UnreachableError,
)
from meta_agent_rag.llm.balance import account_balance
from meta_agent_rag.llm.chat import ChatTransport
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.exchange import Message, Request
from meta_agent_rag.llm.ledger import read_ledger
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.llm.providers import COMPATIBLE, EMBEDDED, choose_provider, providers
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import Behaviour, LoopbackServer, ServerReply, always, loopback_server

SECRET = "sk-0123456789-very-secret"
ASK = [Message(role="system", content="Be brief."), Message(role="user", content="Who wrote Faust?")]
OFF_PEAK = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
ACCOUNT = {
    "is_available": True,
    "balance_infos": [
        {"currency": "USD", "total_balance": "7.50", "granted_balance": "0.50", "topped_up_balance": "7.00"}
    ],
}
SOON = {"retry-after-ms": "5"}
HANG = ServerReply(text="late", seconds=60.0)
Serve = Callable[[Behaviour], LoopbackServer]


class Answer(BaseModel):
    answer: str


GOOD = ServerReply(text='{"answer": "Goethe"}')


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[LoopbackServer, ...]]:
    """Two servers for the whole file: starting and stopping one takes longer than most tests."""
    with loopback_server(always(GOOD)) as first, loopback_server(always(GOOD)) as second:
        yield first, second


@pytest.fixture
def serve(servers: tuple[LoopbackServer, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Serve:
    """Have the next server behave as a test wants it to, with nothing remembered."""
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))  # nothing here speaks TLS, and reading certificates takes 0.1 s
    idle = iter(servers)

    def start(behaviour: Behaviour) -> LoopbackServer:
        server = next(idle)
        server.behaviour, server.bodies, server.account = behaviour, [], ServerReply(body=ACCOUNT)
        return server

    return start


def in_turn(*replies: ServerReply) -> Behaviour:
    """One reply after the other, the last again and again."""
    left = list(replies)
    return lambda body: left.pop(0) if len(left) > 1 else left[0]


def settings_for(server: LoopbackServer | str, **values: object) -> Settings:
    url = server if isinstance(server, str) else server.base_url
    chosen: dict[str, Any] = {
        "llm_provider": "deepseek",
        "deepseek_api_key": SECRET,
        "llm_base_url": url,
        "response_cache": False,
        **values,
    }
    return Settings.load(**chosen)


@asynccontextmanager
async def opened(server: LoopbackServer | str, **values: object) -> AsyncIterator[LanguageModel]:
    """DeepSeek as the loopback server plays it, off peak."""
    async with open_language_model(settings_for(server, **values)) as model:
        yield replace(model, clock=lambda: OFF_PEAK)


# -- what is sent


async def test_a_deepseek_request(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server) as model:
        assert await model.session().ainvoke("write", ASK, Answer) == Answer(answer="Goethe")
    assert server.bodies == [
        {
            "model": "deepseek-v4-flash",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Who wrote Faust?"},
            ],
            "max_tokens": 500,
            "temperature": 0.0,
            "thinking": {"type": "disabled"},
            "response_format": {"type": "json_object"},
        }
    ]


async def test_without_a_schema_no_format_is_asked_for(serve: Serve) -> None:
    server = serve(always(ServerReply(text="<think>Hm.</think> Goethe. ")))
    async with opened(server) as model:
        assert await model.session().ainvoke("write", ASK) == "Goethe."
    assert "response_format" not in server.bodies[0]


async def test_thinking_leaves_the_temperature_out(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server, pro_thinking=True, writer_temperature=0.5) as model:
        await model.session().ainvoke("rewrite", ASK, Answer)
        await model.session().ainvoke("write", ASK, Answer)
    thinking, plain = server.bodies
    assert thinking["thinking"] == {"type": "enabled"}
    assert "temperature" not in thinking
    assert thinking["max_tokens"] == 600
    assert plain["thinking"] == {"type": "disabled"}
    assert plain["temperature"] == 0.5


async def test_stages_go_to_their_tiers(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server, stage_tiers={"evaluate": "flash"}) as model:
        session = model.session()
        for stage in ("write", "rewrite", "reference", "evaluate", "short_answer", "baseline"):
            await session.ainvoke(stage, ASK, Answer)
    flash, pro = "deepseek-v4-flash", "deepseek-v4-pro"
    assert [body["model"] for body in server.bodies] == [flash, pro, flash, flash, pro, flash]
    assert all(0 < body["max_tokens"] <= 1_000 for body in server.bodies)
    assert [row.tier for row in session.rows] == ["flash", "pro", "flash", "flash", "pro", "flash"]


async def test_a_stage_that_there_is_not(serve: Serve) -> None:
    server = serve(always(GOOD))
    with pytest.raises(SettingsError, match="STAGE_TIERS names 'writ', which is no stage; stages are: write, "):
        async with opened(server, stage_tiers={"writ": "pro"}):
            pass


@pytest.mark.parametrize("name", [name for name in providers() if name != EMBEDDED])
async def test_every_provider_bounds_the_reply_and_asks_for_json(name: str, serve: Serve) -> None:
    server = serve(always(GOOD))
    key = providers()[name].key
    assert key is not None
    async with opened(server, **{"llm_provider": name, key: SECRET, "flash_model": "m"}) as model:
        await model.session().ainvoke("write", ASK, Answer)
    body = server.bodies[0]
    limit = "max_completion_tokens" if name == "openai" else "max_tokens"
    assert {key: body[key] for key in body if key.startswith("max_")} == {limit: 500}
    assert body["response_format"] == {"type": "json_object"}
    assert body["temperature"] == 0.0
    own = {key for key in body if key not in ("model", "messages", "temperature", "response_format", limit)}
    assert own == set(providers()[name].thinking_off)


async def test_a_provider_of_schemas_is_sent_the_schema(serve: Serve) -> None:
    server = serve(always(GOOD))
    choice = replace(choose_provider(Settings.load(llm_provider=EMBEDDED)), base_url=server.base_url)
    transport = ChatTransport(choice, max_retries=0)
    schema = Answer.model_json_schema()
    request = Request(stage="write", model="m", messages=tuple(ASK), max_tokens=9, temperature=None, json_schema=schema)
    reply = await transport.complete(request)
    await transport.aclose()
    assert reply.text == GOOD.text
    assert server.bodies[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": schema},
    }
    assert "temperature" not in server.bodies[0]


# -- what comes back


@pytest.mark.parametrize(
    ("usage", "columns", "cost"),
    [
        (
            {"prompt_tokens": 1_000, "completion_tokens": 50, "prompt_cache_hit_tokens": 600},
            (1_000, 600, 400, 50, 0),
            "0.0000918",
        ),
        (
            {
                "prompt_tokens": 1_000,
                "completion_tokens": 50,
                "prompt_cache_hit_tokens": 0,
                "prompt_cache_miss_tokens": 1_000,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            (1_000, 0, 1_000, 50, 30),
            "0.00018",
        ),
        (
            {
                "prompt_tokens": 1_000,
                "completion_tokens": 50,
                "total_tokens": 1_050,
                "prompt_tokens_details": {"cached_tokens": 600, "audio_tokens": 0},
            },
            (1_000, 600, 400, 50, 0),
            "0.0000918",
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": None},
            (10, 0, 10, 1, 0),
            "0.0000021",
        ),
        ({"prompt_tokens": 10, "completion_tokens": 0, "prompt_cache_hit_tokens": 64}, (10, 10, 0, 0, 0), "0.00000003"),
    ],
    ids=["deepseek", "deepseek thinking", "openai", "bare", "more cached than sent"],
)
async def test_usage_as_servers_report_it(
    usage: Mapping[str, Any], columns: tuple[int, ...], cost: str, serve: Serve
) -> None:
    server = serve(always(replace(GOOD, usage=usage)))
    async with opened(server) as model:
        session = model.session("q1", method="ours")
        await session.ainvoke("write", ASK, Answer, round_=2)
    (row,) = session.rows
    tokens = (
        row.prompt_tokens,
        row.cache_hit_tokens,
        row.cache_miss_tokens,
        row.completion_tokens,
        row.reasoning_tokens,
    )
    assert tokens == columns
    assert row.cost_usd == row.paid_usd == Decimal(cost)
    assert row.usage_known
    assert row.latency_s > 0
    assert (row.at, row.stage, row.tier, row.provider, row.model) == (
        OFF_PEAK,
        "write",
        "flash",
        "deepseek",
        "deepseek-v4-flash",
    )
    assert (row.question_id, row.method, row.round, row.attempt, row.error) == ("q1", "ours", 2, 0, None)
    assert row.finish_reason == "stop"


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}])
async def test_usage_that_is_not_reported_is_unknown_and_not_zero(usage: dict[str, Any] | None, serve: Serve) -> None:
    server = serve(always(replace(GOOD, usage=usage)))
    async with opened(server, cost_limit_usd=0.01) as model:
        await model.session().ainvoke("write", ASK, Answer)
        (row,) = model.ledger.rows
        assert (row.usage_known, row.cost_usd, row.paid_usd) == (False, None, None)
        assert model.ledger.totals().cost_usd is None
        assert model.budget.reserved_usd == 0
        assert model.budget.paid_usd > 0  # the reservation stands


async def test_every_call_is_in_the_ledgers_file(serve: Serve, tmp_path: Path) -> None:
    server = serve(in_turn(ServerReply(text="prose"), GOOD, ServerReply(status=400), GOOD))
    async with opened(server) as model:
        first, second = model.session("one"), model.session("two")
        await first.ainvoke("write", ASK, Answer)
        with pytest.raises(RefusedError):
            await second.ainvoke("write", ASK, Answer)
        await second.ainvoke("write", ASK, Answer)
    kept = read_ledger(tmp_path / "data" / "ledger.jsonl")
    assert kept == model.ledger.rows
    assert kept == first.rows + second.rows
    assert [(row.question_id, row.attempt, row.error) for row in kept] == [
        ("one", 0, None),
        ("one", 1, None),
        ("two", 0, "RefusedError"),
        ("two", 0, None),
    ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": [{"message": None}]},
        {"choices": [{"index": 0}]},
        {"choices": [{"message": {"content": "x"}}], "usage": "much"},
        {"detail": "This is some other service."},
    ],
    ids=json.dumps,
)
async def test_a_reply_that_is_no_completion_is_refused(body: dict[str, Any], serve: Serve) -> None:
    server = serve(always(ServerReply(body=body)))
    async with opened(server) as model:
        session = model.session()
        with pytest.raises(RefusedError, match="no chat completion; check the address"):
            await session.ainvoke("write", ASK)
    assert [row.error for row in session.rows] == ["RefusedError"]


# -- structured output


async def test_a_malformed_reply_is_asked_for_again(serve: Serve) -> None:
    server = serve(in_turn(ServerReply(text="It was Goethe."), GOOD))
    async with opened(server) as model:
        session = model.session()
        assert await session.ainvoke("write", ASK, Answer) == Answer(answer="Goethe")
    assert [row.attempt for row in session.rows] == [0, 1]
    first, second = (body["messages"] for body in server.bodies)
    assert second[:2] == first  # the prefix that the provider has cached
    assert second[2] == {"role": "assistant", "content": "It was Goethe."}
    assert second[3]["role"] == "user"
    assert "holds no JSON object" in second[3]["content"]
    assert len(second) == 4


async def test_twice_malformed_is_an_error(serve: Serve) -> None:
    server = serve(in_turn(ServerReply(text="Goethe."), ServerReply(text='{"reply": "Goethe"}'), GOOD))
    async with opened(server) as model:
        session = model.session()
        with pytest.raises(StructuredOutputError) as caught:
            await session.ainvoke("write", ASK, Answer)
    assert len(server.bodies) == 2
    assert [(row.attempt, row.error, row.completion_tokens) for row in session.rows] == [(0, None, 20), (1, None, 20)]
    sentence = str(caught.value)
    assert "'deepseek-v4-flash' was asked for JSON in stage 'write'" in sentence
    assert "answer: Field required" in sentence


async def test_an_empty_reply_is_no_answer(serve: Serve) -> None:
    server = serve(always(ServerReply(text="")))
    async with opened(server) as model:
        with pytest.raises(StructuredOutputError):
            await model.session().ainvoke("write", ASK, Answer)


# -- errors, retries, time


WORDS_OF_DEEPSEEK = {
    "error": {
        "message": "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_request_error",
    }
}
OF_OPENAI = {"error": {"message": "Too long.", "type": "invalid_request_error", "code": "context_length_exceeded"}}
OF_LLAMA_CPP = {"error": {"message": "Too long.", "type": "exceed_context_size_error", "code": 400}}
OF_A_SCHEMA = {"error": {"message": "Unknown parameter 'heat'.", "type": "invalid_request_error", "code": None}}


@pytest.mark.parametrize(
    ("reply", "kind", "said", "stops"),
    [
        (ServerReply(status=401), AuthenticationError, "refused the key (401); check the key", True),
        (ServerReply(status=403), AuthenticationError, "refused the key (403)", True),
        (ServerReply(status=402), BalanceError, "exhausted (402); top it up", True),
        (ServerReply(status=404), RefusedError, "does not know 'deepseek-v4-flash' or the path (404)", False),
        (ServerReply(status=400, body=WORDS_OF_DEEPSEEK), ContextWindowError, "lower EVIDENCE_TOKENS", False),
        (ServerReply(status=400, body=OF_OPENAI), ContextWindowError, "longer than 'deepseek-v4-flash'", False),
        (ServerReply(status=400, body=OF_LLAMA_CPP), ContextWindowError, "lower EVIDENCE_TOKENS", False),
        (
            ServerReply(status=400, body=OF_A_SCHEMA),
            RefusedError,
            "refused the call with 400: Unknown parameter",
            False,
        ),
        (ServerReply(status=422, body={}), RefusedError, "refused the call with 422", False),
    ],
    ids=lambda value: str(value.status) if isinstance(value, ServerReply) else None,
)
async def test_refusals_are_not_retried_and_say_what_to_do(
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
    assert [(row.error, row.cost_usd, row.prompt_tokens) for row in session.rows] == [(kind.__name__, None, 0)]


async def test_a_failing_server_is_asked_again(serve: Serve) -> None:
    failing = ServerReply(status=500, headers=SOON)
    server = serve(in_turn(failing, failing, GOOD))
    async with opened(server, llm_max_retries=2) as model:
        session = model.session()
        assert (await session.ainvoke("write", ASK, Answer)).answer == "Goethe"
    assert len(server.bodies) == 3
    assert [row.error for row in session.rows] == [None]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_retries_run_out(status: int, serve: Serve) -> None:
    server = serve(always(ServerReply(status=status, headers=SOON)))
    async with opened(server, llm_max_retries=1) as model:
        with pytest.raises(RefusedError, match=f"refused the call with {status}: scripted {status}"):
            await model.session().ainvoke("write", ASK)
    assert len(server.bodies) == 2


async def test_the_servers_own_waiting_time_is_kept(serve: Serve) -> None:
    arrived: list[float] = []
    replies = in_turn(ServerReply(status=429, headers={"Retry-After": "1"}), GOOD)

    def behaviour(body: dict[str, Any]) -> ServerReply:
        arrived.append(time.monotonic())
        return replies(body)

    async with opened(serve(behaviour)) as model:
        await model.session().ainvoke("write", ASK)
    assert 1.0 <= arrived[1] - arrived[0] < 2.5  # the SDK's own first pause is half a second


async def test_retries_do_not_outlast_the_total_time(serve: Serve) -> None:
    server = serve(always(ServerReply(status=503, headers={"Retry-After": "30"})))
    started = time.monotonic()
    async with opened(server, llm_timeout_seconds=0.3) as model:
        with pytest.raises(RefusedError, match="LLM_TIMEOUT_SECONDS"):
            await model.session().ainvoke("write", ASK)
    assert time.monotonic() - started < 5


async def test_no_server_at_all(serve: Serve) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        async with opened(url, llm_max_retries=0) as model:
            session = model.session()
            with pytest.raises(UnreachableError, match=f"DeepSeek at {url} does not answer; check that it runs"):
                await session.ainvoke("write", ASK)
    assert [row.error for row in session.rows] == ["UnreachableError"]


async def test_an_address_without_a_scheme_is_unreachable() -> None:
    async with opened("127.0.0.1:8000/v1", llm_max_retries=0) as model:
        with pytest.raises(UnreachableError, match="the address is right"):
            await model.session().ainvoke("write", ASK)


async def test_a_server_that_hangs(serve: Serve) -> None:
    server = serve(always(HANG))
    started = time.monotonic()
    async with opened(server, llm_timeout_seconds=0.3, cost_limit_usd=1.0) as model:
        session = model.session()
        with pytest.raises(RefusedError, match="did not answer within 0 s; raise LLM_TIMEOUT_SECONDS"):
            await session.ainvoke("write", ASK)
        assert model.budget.reserved_usd == 0
        assert model.budget.paid_usd > 0  # the server may bill what it was sent
    assert 0.3 <= time.monotonic() - started < 5
    assert len(server.bodies) == 1
    (row,) = session.rows
    assert row.error == "timeout"
    assert row.latency_s >= 0.3


async def test_the_deadline_ends_a_call(serve: Serve) -> None:
    server = serve(always(HANG))
    async with opened(server) as model:
        session = model.session(deadline=time.monotonic() + 0.3)
        with pytest.raises(DeadlineError, match="during a model call") as caught:
            await session.ainvoke("write", ASK)
    assert caught.value.stop_reason == "deadline"
    assert [row.error for row in session.rows] == ["timeout"]


async def test_no_call_begins_after_the_deadline(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server) as model:
        session = model.session(deadline=time.monotonic() - 0.001)
        with pytest.raises(DeadlineError, match="has passed"):
            await session.ainvoke("write", ASK)
    assert server.bodies == []
    assert session.rows == []


async def test_a_cancelled_call_leaves_a_row(serve: Serve) -> None:
    arrived = threading.Event()

    def behaviour(body: dict[str, Any]) -> ServerReply:
        arrived.set()
        return HANG

    async with opened(serve(behaviour), cost_limit_usd=1.0) as model:
        session = model.session()
        task = asyncio.create_task(session.ainvoke("write", ASK))
        assert await asyncio.to_thread(arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [row.error for row in session.rows] == ["cancelled"]
        assert model.budget.reserved_usd == 0
        assert model.budget.paid_usd > 0
        assert model.ledger.totals().failed_calls == 1


# -- cache


async def test_a_repeated_call_is_served_from_the_cache(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server, response_cache=True) as model:
        session = model.session()
        first = await session.ainvoke("write", ASK, Answer)
        assert await session.ainvoke("write", ASK, Answer) == first
        assert await model.session().ainvoke("rewrite", ASK, Answer) == first
    async with opened(server, response_cache=True) as again:
        assert await again.session("another").ainvoke("write", ASK, Answer) == first
        (kept,) = again.ledger.rows
    paid, cached = session.rows
    assert len(server.bodies) == 2  # `write` and `rewrite`
    assert (paid.cached, cached.cached, kept.cached) == (False, True, True)
    assert cached.paid_usd == kept.paid_usd == Decimal(0)
    assert paid.paid_usd == paid.cost_usd == cached.cost_usd == kept.cost_usd
    assert paid.cost_usd is not None
    assert paid.cost_usd > 0
    assert paid.request == cached.request == kept.request
    assert cached.latency_s == 0
    assert cached.prompt_tokens == paid.prompt_tokens == 100


async def test_another_endpoint_or_parameter_is_another_call(serve: Serve) -> None:
    first, second = serve(always(GOOD)), serve(always(ServerReply(text='{"answer": "Marlowe"}')))
    async with opened(first, response_cache=True) as model:
        await model.session().ainvoke("write", ASK, Answer)
    async with opened(second, response_cache=True) as model:
        assert (await model.session().ainvoke("write", ASK, Answer)).answer == "Marlowe"
    async with opened(first, response_cache=True, writer_temperature=0.5) as model:
        await model.session().ainvoke("write", ASK, Answer)
    async with opened(first, response_cache=True, flash_thinking=True) as model:
        await model.session().ainvoke("write", ASK, Answer)
    assert len(first.bodies) == 3


async def test_failures_are_not_kept(serve: Serve) -> None:
    server = serve(in_turn(ServerReply(status=400), GOOD))
    async with opened(server, response_cache=True) as model:
        with pytest.raises(RefusedError):
            await model.session().ainvoke("write", ASK, Answer)
        assert (await model.session().ainvoke("write", ASK, Answer)).answer == "Goethe"


async def test_the_cache_serves_after_money_and_time_are_spent(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server, response_cache=True) as model:
        await model.session().ainvoke("write", ASK, Answer)
    async with opened(server, response_cache=True, cost_limit_usd=1e-9) as model:
        assert await model.session(deadline=time.monotonic() - 1).ainvoke("write", ASK, Answer)
        with pytest.raises(CostLimitError):
            await model.session().ainvoke("write", [*ASK, ASK[1]], Answer)
    assert len(server.bodies) == 1


# -- money


async def test_the_cost_limit_refuses_before_the_call(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server, cost_limit_usd=0.0001) as model:
        session = model.session()
        with pytest.raises(CostLimitError, match=r"limit of 0\.0001 USD") as caught:
            await session.ainvoke("write", ASK)
        assert caught.value.stop_reason == "cost_limit"
        assert caught.value.stops_run
    assert server.bodies == []
    assert session.rows == []


async def test_the_cost_limit_is_kept_by_many_calls_at_once(serve: Serve) -> None:
    usage = {"prompt_tokens": 60, "completion_tokens": 500}
    server = serve(always(replace(GOOD, usage=usage, seconds=0.02)))
    async with opened(server, cost_limit_usd=0.002) as model:
        calls = [model.session().ainvoke("write", [*ASK, Message(role="user", content=str(n))]) for n in range(10)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        spent = model.budget.paid_usd
        assert model.budget.reserved_usd == 0
        assert spent == model.ledger.totals().paid_usd
    refused = sum(isinstance(result, CostLimitError) for result in results)
    assert 0 < refused < 10
    assert len(server.bodies) == 10 - refused
    assert 0 < spent <= Decimal("0.002")


async def test_what_was_paid_before_counts(serve: Serve) -> None:
    server = serve(always(GOOD))
    settings = settings_for(server, cost_limit_usd=0.01)
    async with open_language_model(settings, paid_usd=Decimal("0.0099")) as model:
        with pytest.raises(CostLimitError):
            await model.session().ainvoke("write", ASK)


async def test_a_limit_needs_a_price(serve: Serve) -> None:
    server = serve(always(GOOD))
    local = {"llm_provider": COMPATIBLE, "flash_model": "local"}
    async with opened(server, **local, cost_limit_usd=1.0) as model:
        with pytest.raises(UnpricedModelError, match="'local' has no known price"):
            await model.session().ainvoke("write", ASK)
    assert server.bodies == []
    async with opened(server, **local) as model:
        await model.session().ainvoke("write", ASK)
        assert model.ledger.totals().cost_usd is None


@pytest.mark.parametrize(
    ("price_as", "stage", "cost"),
    [
        # 40 * 0.15 + 60 * 0.003 + 20 * 0.60 and 40 * 0.66 + 60 * 0.022 + 20 * 1.98 millionths
        ("deepseek", "write", "0.00001818"),
        ("deepseek", "rewrite", "0.00006732"),
        ("deepseek-v4-pro", "write", "0.00006732"),
        # OpenAI's list: 40 * 2.00 + 60 * 0.50 + 20 * 8.00, and 40 * 0.40 + 60 * 0.10 + 20 * 1.60
        ("gpt-4.1", "write", "0.00027"),
        ("openai", "rewrite", "0.00027"),
        ("openai", "write", "0.000054"),
    ],
)
async def test_prices_on_paper(price_as: str, stage: str, cost: str, serve: Serve) -> None:
    server = serve(always(GOOD))
    local = {"llm_provider": COMPATIBLE, "flash_model": "local", "cost_limit_usd": 1.0}
    async with opened(server, **local, price_as=price_as) as model:
        await model.session().ainvoke(stage, ASK)
        (row,) = model.ledger.rows
        assert model.budget.paid_usd == Decimal(cost)
    assert row.model == "local"
    assert row.cost_usd == row.paid_usd == Decimal(cost)


@pytest.mark.parametrize("price_as", ["no-such-model", COMPATIBLE, EMBEDDED])
async def test_no_price_on_paper_is_none(price_as: str, serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server, price_as=price_as) as model:
        await model.session().ainvoke("write", ASK)
        assert model.ledger.rows[0].cost_usd is None


# -- DeepSeek's balance


async def test_the_balance(serve: Serve) -> None:
    server = serve(always(GOOD))
    balance = await account_balance(settings_for(server))
    assert balance.is_available
    (info,) = balance.balance_infos
    assert (info.currency, info.total_balance) == ("USD", Decimal("7.50"))
    assert (info.granted_balance, info.topped_up_balance) == (Decimal("0.50"), Decimal("7.00"))
    assert server.bodies == []


@pytest.mark.parametrize(
    ("account", "kind", "said"),
    [
        (ServerReply(status=401), AuthenticationError, "refused the key (401); check the key (`marag doctor` names"),
        (ServerReply(status=402), BalanceError, "exhausted (402)"),
        (ServerReply(status=503, headers=SOON), RefusedError, "refused the call with 503"),
        (ServerReply(body={"is_available": True}), RefusedError, "is not a balance; is it DeepSeek's address?"),
    ],
    ids=["401", "402", "503", "no balance"],
)
async def test_a_balance_that_is_not_told(
    account: ServerReply, kind: type[ModelError], said: str, serve: Serve
) -> None:
    server = serve(always(GOOD))
    server.account = account
    with pytest.raises(kind) as caught:
        await account_balance(settings_for(server))
    assert said in str(caught.value)
    assert server.base_url in str(caught.value)
    assert SECRET not in f"{caught.value} {caught.value!r}"


async def test_only_deepseek_tells_its_balance(serve: Serve) -> None:
    server = serve(always(GOOD))
    for values in ({"llm_provider": COMPATIBLE, "flash_model": "m"}, {"deepseek_api_key": None}):
        with pytest.raises(InputError, match="Only DeepSeek tells its balance; set DEEPSEEK_API_KEY"):
            await account_balance(settings_for(server, **values))

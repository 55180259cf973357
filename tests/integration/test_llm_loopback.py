"""The model client over a real connection: requests sent and replies parsed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from meta_agent_rag.errors import RefusedError, StructuredOutputError
from meta_agent_rag.llm.chat import Connection
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.llm.providers import EMBEDDED, choose_provider, providers
from meta_agent_rag.settings import EndpointRow, ModelRoles, Settings
from meta_agent_rag.testing.server import ServerReply, always
from tests.loopback import ASK, GOOD, OFF_PEAK, SECRET, Answer, Serve, in_turn, opened


async def test_a_deepseek_request_has_the_expected_fields(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server) as model:
        assert await model.session().ainvoke("write", ASK, Answer) == Answer(answer="Goethe")
    assert server.bodies == [
        {
            "model": "deepseek-v4-flash",
            "stream": False,
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who wrote Faust?"}],
            "max_tokens": 700,
            "temperature": 0.0,
            "thinking": {"type": "disabled"},
            "response_format": {"type": "json_object"},
        }
    ]


@pytest.mark.parametrize("name", [name for name in providers() if name != EMBEDDED])
async def test_every_provider_limits_the_reply_and_requests_json(name: str, serve: Serve) -> None:
    server = serve(always(GOOD))
    provider = providers()[name]
    keyed = {provider.key: SECRET} if provider.key else {}
    async with opened(server, **{"llm_provider": name, "flash_model": "m", **keyed}) as model:
        await model.session().ainvoke("write", ASK, Answer)
    body = server.bodies[0]
    limit = "max_completion_tokens" if name == "openai" else "max_tokens"
    assert {key: body[key] for key in body if key.startswith("max_")} == {limit: 700}
    assert body["response_format"]["type"] == provider.json_mode
    assert body["temperature"] == 0.0
    own = {key for key in body if key not in ("model", "messages", "stream", "temperature", "response_format", limit)}
    assert own == set(provider.thinking_off)


async def test_a_provider_that_supports_schemas_is_sent_the_schema(serve: Serve) -> None:
    server = serve(always(GOOD))
    tiers = choose_provider(Settings.load(llm_provider=EMBEDDED)).tiers
    connection = Connection(endpoint=replace(tiers["flash"], base_url=server.base_url), identity="here")
    schema = Answer.model_json_schema()
    request = Request(stage="write", model="m", messages=tuple(ASK), max_tokens=9, temperature=None, json_schema=schema)
    reply = await connection.complete(request, {})
    await connection.aclose()
    assert reply.text == GOOD.text
    assert server.bodies[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": schema},
    }
    assert "temperature" not in server.bodies[0]


@pytest.mark.parametrize(
    ("usage", "columns", "cost"),
    [
        ({"prompt_cache_hit_tokens": 600}, (1_000, 600, 400, 50, 0), "0.0000918"),
        (
            {
                "prompt_cache_hit_tokens": 0,
                "prompt_cache_miss_tokens": 1_000,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            (1_000, 0, 1_000, 50, 30),
            "0.00018",
        ),
        (
            {"total_tokens": 1_050, "prompt_tokens_details": {"cached_tokens": 600, "audio_tokens": 0}},
            (1_000, 600, 400, 50, 0),
            "0.0000918",
        ),
        ({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": None}, (10, 0, 10, 1, 0), "0.0000021"),
    ],
    ids=["deepseek", "deepseek thinking", "openai", "bare"],
)
async def test_reported_usage_is_parsed(
    usage: Mapping[str, Any], columns: tuple[int, ...], cost: str, serve: Serve
) -> None:
    server = serve(always(replace(GOOD, usage={"prompt_tokens": 1_000, "completion_tokens": 50, **usage})))
    async with opened(server) as model:
        session = model.session("q1", method="ours")
        await session.ainvoke("write", ASK, Answer, round_=2)
    (row,) = session.rows
    read = (row.prompt_tokens, row.cache_hit_tokens, row.cache_miss_tokens, row.completion_tokens)
    assert (*read, row.reasoning_tokens) == columns
    assert row.cost_usd == row.paid_usd == Decimal(cost)
    assert row.usage_known
    assert row.latency_s > 0
    assert (row.at, row.stage, row.tier) == (OFF_PEAK, "write", "flash")
    assert (row.provider, row.model) == ("deepseek", "deepseek-v4-flash")
    assert (row.question_id, row.method, row.round, row.attempt, row.error) == ("q1", "ours", 2, 0, None)
    assert row.finish_reason == "stop"


@pytest.mark.parametrize(
    "body", [{}, {"choices": [{"message": None}]}, {"detail": "This is some other service."}], ids=json.dumps
)
async def test_a_reply_that_is_not_a_completion_is_rejected(body: dict[str, Any], serve: Serve) -> None:
    server = serve(always(ServerReply(body=body)))
    async with opened(server) as model:
        session = model.session()
        with pytest.raises(RefusedError, match="not a chat completion; check the address"):
            await session.areply("write", ASK)
    assert [row.error for row in session.rows] == ["TransientError"] * 3


ODD_USAGES = [
    ("much", None),
    ({"prompt_tokens": "20", "completion_tokens": 3}, None),
    ({"prompt_tokens": 20, "completion_tokens": -3_000_000}, None),
    ({"prompt_tokens": 10**30, "completion_tokens": 3}, None),
    ({"prompt_tokens": 20.0, "completion_tokens": 3.0, "prompt_cache_hit_tokens": 8.0}, (20, 8, 3)),
    ({"prompt_tokens": 20, "completion_tokens": None, "prompt_cache_hit_tokens": 99}, (20, 20, 0)),
    ({"prompt_tokens": 20, "completion_tokens": 3, "prompt_cache_hit_tokens": -5}, (20, 0, 3)),
    ({"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": "none"}, (20, 0, 3)),
]


@pytest.mark.parametrize(("usage", "read"), ODD_USAGES, ids=str)
async def test_malformed_usage_is_unknown(usage: Any, read: tuple[int, int, int] | None, serve: Serve) -> None:
    body = {"choices": [{"message": {"content": "Goethe"}, "logprobs": {"content": [{"logprob": "nope"}]}}]}
    server = serve(always(ServerReply(body={**body, "usage": usage})))
    async with opened(server, cost_limit_usd=1.0) as model:
        session = model.session()
        assert (await session.areply("write", ASK)).text == "Goethe"
        assert 0 < model.budget.paid_usd < Decimal("0.01")
    (row,) = session.rows
    assert row.usage_known is (read is not None)
    assert (row.prompt_tokens, row.cache_hit_tokens, row.completion_tokens) == (read or (None, None, None))


async def test_two_malformed_replies_are_an_error(serve: Serve) -> None:
    server = serve(in_turn(ServerReply(text="Goethe."), ServerReply(text='{"reply": "Goethe"}'), GOOD))
    async with opened(server) as model:
        session = model.session()
        with pytest.raises(StructuredOutputError) as caught:
            await session.ainvoke("write", ASK, Answer)
    assert len(server.bodies) == 2
    assert [(row.attempt, row.error, row.completion_tokens) for row in session.rows] == [(0, None, 20), (1, None, 20)]
    sentence = str(caught.value)
    assert "'deepseek-v4-flash' did not send the requested JSON in stage 'write'" in sentence
    assert "answer: Field required" in sentence


async def test_endpoints_of_one_model_keep_their_own_json_mode(serve: Serve) -> None:
    server = serve(always(GOOD))
    row = EndpointRow(provider="compatible", base_url=server.base_url, model="m", json_mode="json_object")
    endpoints = {"plain": row, "strict": row.model_copy(update={"json_mode": "json_schema"})}
    roles = ModelRoles(endpoints=endpoints, roles={"flash": "plain", "critic": "strict"})
    async with opened(server, model_roles=roles, llm_base_url=None) as model:
        for stage in ("write", "evaluate"):
            await model.session().ainvoke(stage, ASK, Answer)
    assert [body["response_format"]["type"] for body in server.bodies] == ["json_object", "json_schema"]

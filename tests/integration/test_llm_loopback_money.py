"""The model client with the response cache and cost limits."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

import pytest

from meta_agent_rag.errors import CostLimitError, StructuredOutputError
from meta_agent_rag.llm.ledger import LedgerRow, total
from meta_agent_rag.llm.messages import Message
from meta_agent_rag.testing.server import ServerReply, always
from tests.loopback import ASK, GOOD, Answer, Serve, in_turn, opened


async def test_a_repeated_call_is_served_from_the_cache(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server, response_cache=True) as model:
        session = model.session()
        first = await session.ainvoke("write", ASK, Answer)
        assert await session.ainvoke("write", ASK, Answer) == first
        assert await model.session().ainvoke("rewrite", ASK, Answer) == first
    async with opened(server, response_cache=True) as again:
        another = again.session("another")
        assert await another.ainvoke("write", ASK, Answer) == first
        (kept,) = another.rows
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


async def test_another_parameter_is_another_call(serve: Serve) -> None:
    server = serve(always(GOOD))
    each: list[dict[str, object]] = [{}, {"writer_temperature": 0.5}, {"flash_thinking": True}]
    for own in each:
        async with opened(server, response_cache=True, **own) as model:
            await model.session().ainvoke("write", ASK, Answer)
    assert len(server.bodies) == 3


async def test_a_reply_that_is_malformed_twice_is_not_cached(serve: Serve) -> None:
    server = serve(in_turn(ServerReply(text="Goethe."), ServerReply(text="It was Goethe."), GOOD))
    async with opened(server, response_cache=True) as model:
        with pytest.raises(StructuredOutputError):
            await model.session().ainvoke("write", ASK, Answer)
        assert await model.session().ainvoke("write", ASK, Answer) == Answer(answer="Goethe")
        await model.session().ainvoke("write", ASK, Answer)
    assert len(server.bodies) == 3


async def test_the_cost_limit_is_checked_before_the_call(serve: Serve) -> None:
    server = serve(always(GOOD))
    async with opened(server, cost_limit_usd=0.0001) as model:
        session = model.session()
        with pytest.raises(CostLimitError, match=r"limit of 0\.0001 USD") as caught:
            await session.areply("write", ASK)
        assert caught.value.stop_reason == "cost_limit"
        assert caught.value.stops_run
    assert server.bodies == []
    assert session.rows == []


async def test_concurrent_calls_respect_the_cost_limit(serve: Serve) -> None:
    usage = {"prompt_tokens": 60, "completion_tokens": 500}
    server = serve(always(replace(GOOD, usage=usage, seconds=0.02)))
    async with opened(server, cost_limit_usd=0.002) as model:
        rows: list[LedgerRow] = []
        model.ledger.listeners.append(rows.append)
        calls = [model.session().areply("write", [*ASK, Message(role="user", content=str(n))]) for n in range(10)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        spent = model.budget.paid_usd
        assert model.budget.reserved_usd == 0
        assert spent == total(rows).paid_usd
    refused = sum(isinstance(result, CostLimitError) for result in results)
    assert 0 < refused < 10
    assert len(server.bodies) == 10 - refused
    assert 0 < spent <= Decimal("0.002")


async def test_missing_usage_is_charged_at_the_highest_possible_cost(serve: Serve) -> None:
    server = serve(always(replace(GOOD, usage=None)))
    async with opened(server, cost_limit_usd=1.0) as model:
        session = model.session()
        await session.areply("write", ASK)
        (row,) = session.rows
        assert model.budget.reserved_usd == 0
        assert row.paid_usd == model.budget.paid_usd
        most = Decimal("0.60") * len(GOOD.text.encode()) / Decimal(10**6)  # one token per byte at the highest tariff
    assert 0 < model.budget.paid_usd < most + Decimal("0.00015")


@pytest.mark.parametrize("wire", ["cut", "reset", "closed"])
async def test_every_attempt_with_a_lost_reply_is_reserved_and_recorded(
    wire: Literal["cut", "reset", "closed"], serve: Serve
) -> None:
    lost = replace(GOOD, wire=wire)
    server = serve(in_turn(lost, lost, GOOD))
    async with opened(server, cost_limit_usd=1.0) as model:
        session = model.session()
        assert await session.ainvoke("write", ASK, Answer) == Answer(answer="Goethe")
        assert model.budget.paid_usd == sum(row.paid_usd or 0 for row in session.rows)
    *tries, served = session.rows
    assert [row.error for row in tries] == ["LostConnectionError"] * 2
    assert served.error is None
    assert len(server.bodies) == 3
    assert all(row.paid_usd is not None and row.paid_usd > (served.paid_usd or 0) for row in tries)


@pytest.mark.parametrize("text", ["1 2 3 4 5\n", "桥是由建筑师设计的", "𓀀𓀁", "xQzKvW", "¿¡"])
async def test_the_cost_limit_holds_if_every_byte_is_a_token(text: str, serve: Serve) -> None:
    def behaviour(body: dict[str, Any]) -> ServerReply:
        tokens = sum(len(message["content"].encode()) for message in body["messages"])
        return replace(GOOD, usage={"prompt_tokens": tokens, "completion_tokens": body["max_tokens"]}, seconds=0.02)

    server = serve(behaviour)
    async with opened(server, cost_limit_usd=0.02) as model:
        asked = [Message(role="user", content=f"{text * 1000}{n}") for n in range(64)]
        results = await asyncio.gather(
            *(model.session().areply("write", [one]) for one in asked), return_exceptions=True
        )
        assert model.budget.paid_usd <= Decimal("0.02")
    assert any(isinstance(result, CostLimitError) for result in results)
    assert len(server.bodies) > 2

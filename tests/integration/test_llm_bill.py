"""The ledger matches the bill of a server that keeps its own accounts, to the last digit."""

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from meta_agent_rag.llm.ledger import LedgerRow, read_ledger, total
from meta_agent_rag.llm.messages import Message
from meta_agent_rag.testing.server import ServerReply
from tests.loopback import GOOD, Serve, opened

CALLS = 100
"""Thirty times as many take half a minute and agree as well."""
SECOND = timedelta(seconds=1)
RATES = {  # nanodollars per token: (cache hit, cache miss, completion), off-peak, by the date they take effect
    "deepseek-v4-flash": {
        datetime(2026, 8, 1, tzinfo=UTC): (2.8, 140, 280),
        datetime(2026, 9, 10, tzinfo=UTC): (3, 150, 600),
    },
    "deepseek-v4-pro": {
        datetime(2026, 8, 1, tzinfo=UTC): (3.625, 435, 870),
        datetime(2026, 8, 17, tzinfo=UTC): (22, 660, 1980),
    },
}
BOUNDARIES = [
    datetime(2026, 8, 16, 23, 59, 59, tzinfo=UTC),  # the last second of the first tariff
    *(datetime(2026, 9, 10, hour, tzinfo=UTC) for hour in (0, 1, 4, 6, 10)),  # a Thursday, the second one's first day
    *(datetime(2026, 11, 7, hour, tzinfo=UTC) for hour in (1, 4, 6, 10)),  # a Saturday
]
PEAKS = ((1, 4), (6, 10))


def picodollars(model: str, at: datetime, hit: int, miss: int, written: int) -> int:
    """The bill as an integer: thousandths of a nanodollar are fine enough for every tariff."""
    first = max(day for day in RATES[model] if day <= at)
    dated = first > min(RATES[model])
    at_peak = dated and at.weekday() < 5 and any(start <= at.hour < end for start, end in PEAKS)
    rates = [round(rate * 1000) for rate in RATES[model][first]]
    return (2 if at_peak else 1) * sum(rate * tokens for rate, tokens in zip(rates, (hit, miss, written), strict=True))


async def test_the_ledger_agrees_with_the_bill(serve: Serve, tmp_path: Path) -> None:
    chance = random.Random(2000)
    billed: list[int] = []
    moment = BOUNDARIES[0]

    def reply(body: dict[str, Any]) -> ServerReply:
        written, hit, miss = chance.randint(0, 900), chance.randint(0, 4000), chance.randint(1, 4000)
        usage: dict[str, Any] = {"prompt_tokens": hit + miss, "completion_tokens": written}
        shape = chance.randrange(3)
        if shape == 0:
            usage |= {"prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": miss}
        elif shape == 1:
            usage |= {"prompt_tokens_details": {"cached_tokens": hit}}
        else:
            hit, miss = 0, hit + miss
        billed.append(picodollars(body["model"], moment, hit, miss, written))
        return replace(GOOD, usage=usage)

    server = serve(reply)
    rows: list[LedgerRow] = []
    async with opened(server) as model:
        model.ledger.listeners.append(rows.append)
        for boundary in BOUNDARIES:
            for moment in (boundary - SECOND, boundary, boundary + SECOND):
                if datetime(2026, 8, 17, tzinfo=UTC) <= moment < datetime(2026, 9, 10, tzinfo=UTC):
                    continue  # the flash model has no price then
                at = replace(model, clock=partial(_same, moment))
                calls = [
                    at.session().areply(stage, [Message(role="user", content=f"{moment} {number}")])
                    for number in range(CALLS // (3 * len(BOUNDARIES)))
                    for stage in ("write", "rewrite")
                ]
                await asyncio.gather(*calls)
        reported = total(rows).cost_usd
    assert reported is not None
    assert reported * 10**12 == sum(billed)
    assert len(billed) > CALLS
    assert total(read_ledger(tmp_path / "data" / "ledger.jsonl")).cost_usd == reported


def _same(moment: datetime) -> datetime:
    return moment

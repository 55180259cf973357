"""A run against a server with every kind of injected fault."""

import pytest

from benchmarks.speed.faults import measured
from meta_agent_rag.testing.faults import FAULTS, Misbehaving
from meta_agent_rag.testing.server import ServerReply, always


@pytest.mark.slow
async def test_failing_calls_are_retried_and_lose_no_answer() -> None:
    result = await measured(n=24, share=0.3, seed=1, concurrency=24, seconds=5.0)
    assert len(result["faults"]) >= 12
    assert result["answered"] == result["same"] == 24
    assert result["calls"] <= 1.5 * result["calls_undisturbed"]


def test_faults_depend_on_the_call_and_not_on_call_order() -> None:
    calls = [{"model": "m", "messages": [{"role": "user", "content": str(n)}], "seed": 1} for n in range(300)]
    one, two = (Misbehaving(inner=always(ServerReply(text='{"a": 1}')), seed=4) for _ in range(2))
    replies = [one(call) for call in calls]
    assert [two(call) for call in reversed(calls)] == replies[::-1]
    assert one.struck == two.struck
    assert set(one.struck) == set(FAULTS)
    assert 30 <= one.struck.total() <= 90
    assert all(one(call) == ServerReply(text='{"a": 1}') for call in calls)

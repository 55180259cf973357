"""The benchmark of orchestration overhead, on a few questions."""

from pathlib import Path

import pytest

from benchmarks.speed.orchestration import Workload, measured
from meta_agent_rag.testing.server import disagreeing, loopback_server


@pytest.mark.slow
async def test_both_sides_make_the_same_calls(tmp_path: Path) -> None:
    with loopback_server(disagreeing(0.05)) as server:
        result = await measured(Workload(address=server.base_url, n=4, concurrency=4, seconds=0.05), tmp_path, 1)
        calls = len(server.bodies)
    assert result["calls_per_question"] == 4
    assert calls == 2 * (2 + 4) * 4, "two warm-up and four measured questions on each side"
    assert result["ours_s"] > result["ideal_s"] > 0
    assert result["bare_cpu_ms_per_call"] > 0

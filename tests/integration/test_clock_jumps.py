"""A wall clock that jumps during a benchmark: answers are unaffected, and each call is priced by its own time."""

import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from meta_agent_rag.llm import client
from meta_agent_rag.llm.ledger import read_ledger, total
from meta_agent_rag.llm.messages import Usage
from meta_agent_rag.llm.pricing import price
from meta_agent_rag.testing.server import disagreeing, loopback_server
from tests.integration.test_runner import environment, in_process, lines, only_run, succeeded

NOON = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
LEAPS = (0, -40, 3_000, 0, -9_000, 400, 24 * 365, -24 * 365 * 3, 1, 20, -7)
"""Hours from noon, as shown by a clock that is set wrong and corrected; a prime number of them, so that a call
that reads the clock several times does not always see the same ones."""


class Leaping(datetime):
    """The class `datetime`, returning a different time on each call."""

    looks = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Leaping":
        cls.looks += 1
        moment = NOON + timedelta(hours=LEAPS[cls.looks % len(LEAPS)])
        return cls.fromtimestamp(moment.timestamp(), tz)


def answers(folder: Path) -> list[tuple[str, str, int]]:
    rows = lines(folder / "samples.jsonl")
    return sorted((row["id"], row["prediction"], len(row["rounds"])) for row in rows)


@pytest.mark.slow
def test_a_run_survives_clock_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_server(disagreeing()) as server:
        env = environment(server.base_url, tmp_path / "data")
        assert in_process(["--n", "4"], env).exit_code == 0
        calm = answers(only_run(tmp_path))
        asked = len(server.bodies)
    with loopback_server(disagreeing()) as server:
        other = tmp_path / "leaping"
        other.mkdir()
        env = environment(server.base_url, other / "data")
        monkeypatch.setattr(client, "datetime", Leaping)
        wall = time.time
        monkeypatch.setattr(time, "time", lambda: wall() + 3600 * LEAPS[Leaping.looks % len(LEAPS)])
        succeeded(["--n", "4", "--output-dir", str(other / "RESULTS")], env)
        folder = only_run(other)
        assert answers(folder) == calm
        assert len(server.bodies) == asked
        assert Leaping.looks >= asked
        assert in_process(["--resume", str(folder)], env).exit_code == 0
        assert len(server.bodies) == asked
    ledger = list(read_ledger(folder / "calls.jsonl"))
    assert len(ledger) == asked
    assert len({row.at for row in ledger}) > 3
    for row in ledger:
        sums = total([row])
        usage = Usage(prompt=sums.prompt_tokens, cache_hit=sums.cache_hit_tokens, completion=sums.completion_tokens)
        listed = price(usage, model=row.model, prices=None, at=row.at)
        assert row.cost_usd == (listed.usd if listed else None)
    assert any(row.cost_usd for row in ledger)
    assert all(0 <= row.latency_s < 600 for row in ledger)

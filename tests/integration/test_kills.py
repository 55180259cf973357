"""A run killed at random moments gives the same result as an uninterrupted one and pays for nothing twice."""

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from meta_agent_rag.testing.server import LoopbackServer, disagreeing, loopback_server
from tests.forked import RUNNER, forked
from tests.integration.test_runner import command, environment, lines, only_run, run, summary_of

pytestmark = pytest.mark.slow

KILLS = 10
WORDS = ("--n", "12", "--concurrency", "2", "--method", "metarag,standard_rag")


def run_and_kill(
    words: list[str], env: dict[str, str], folder: Path, server: LoopbackServer, chance: random.Random
) -> bool:
    """Start a run and kill it after a random number of calls and delay; returns whether it was still running."""
    until = len(server.bodies) + chance.randint(0, 3)
    child = forked(RUNNER, words, env, folder)
    started = time.monotonic()
    while child.running and len(server.bodies) <= until and time.monotonic() - started < 60:
        time.sleep(0.002)
    time.sleep(chance.random() * 0.06)
    return child.killed()


def test_kills_change_no_result_and_add_no_cost(tmp_path: Path) -> None:
    chance = random.Random(4812)
    with loopback_server(disagreeing(0.03)) as server:
        env = environment(server.base_url, tmp_path / "data")
        words = command(*WORDS)
        kills = 0
        for _ in range(KILLS):
            kills += run_and_kill(words, env, tmp_path, server, chance)
            folder = only_run(tmp_path)
            words = command("--resume", folder.name, "--concurrency", "2")
            with (folder / "samples.jsonl").open("ab") as file:  # as left by a kill during a write
                file.write(b'{"id": "torn')
        assert kills >= KILLS - 1, "nearly every kill must interrupt a running process"
        done = run(words, env, tmp_path)
        assert done.returncode == 0, done.stderr
        broken = only_run(tmp_path)
        asked = Counter(json.dumps(body, sort_keys=True) for body in server.bodies)
        unbroken = run(command(*WORDS, "--output-dir", "WHOLE"), env, tmp_path)
        assert unbroken.returncode == 0, unbroken.stderr
        assert sum(asked.values()) == len(server.bodies), "the uninterrupted run finds every reply in the cache"
    (whole,) = (tmp_path / "WHOLE").iterdir()
    assert summary_of(broken) == summary_of(whole)
    assert len({(row["id"], row["method"]) for row in lines(broken / "samples.jsonl")}) == 24
    received = Counter(
        row["request"] for row in lines(broken / "calls.jsonl") if not row["cached"] and not row["error"]
    )
    assert set(received.values()) == {1}, "a reply that was received is never paid for again"
    assert sum(asked.values()) - len(asked) <= 2 * KILLS, "only calls in progress at a kill are repeated"

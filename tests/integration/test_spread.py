"""A run spread over a cluster comes to what one run does, also where a node is lost half-way."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.merging.folders import merge_folders
from benchmarks.spreading.shard_task import places, work
from meta_agent_rag.errors import InputError
from meta_agent_rag.testing.server import disagreeing, loopback_server
from tests.cluster import two_nodes
from tests.integration.test_runner import command, environment, in_process, lines
from tests.integration.test_shards import timeless

WORDS = ("--n", "6", "--method", "metarag,standard_rag", "--concurrency", "1")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Has this process, and what it starts, use a loopback server."""
    with loopback_server(disagreeing(0.05)) as server:
        for name, value in environment(server.base_url, tmp_path / "data").items():
            monkeypatch.setenv(name, value)
        yield server


def test_shards_that_are_done_one_by_one_are_one_run(settings: Any, tmp_path: Path) -> None:
    tasks = places(tmp_path / "SHARDS", tmp_path, command(*WORDS), 3)
    outcomes = [work(task) for task in tasks]
    assert [(outcome.shard, outcome.code) for outcome in outcomes] == [("1/3", 0), ("2/3", 0), ("3/3", 0)]
    asked = len(settings.bodies)
    again = [work(task) for task in tasks]
    assert [outcome.folder for outcome in again] == [outcome.folder for outcome in outcomes]
    assert len(settings.bodies) == asked, "what is finished is not asked again"
    merged, summary = merge_folders([outcome.folder or "" for outcome in outcomes], tmp_path, plots=False)
    assert summary["methods"]["metarag"]["n"] == 6
    assert len(lines(merged.path / "samples.jsonl")) == 12


def test_a_shard_that_fails_says_why(settings: Any, tmp_path: Path) -> None:
    (task,) = places(tmp_path / "SHARDS", tmp_path, [*command(*WORDS), "--set", "COST_LIMIT_USD=0.0000001"], 1)
    outcome = work(task)
    assert outcome.code != 0
    assert "raise the limit to continue" in outcome.said


def test_a_node_without_the_folder_is_refused(tmp_path: Path) -> None:
    (task,) = places(tmp_path / "SHARDS", tmp_path / "elsewhere", command(*WORDS), 1)
    with pytest.raises(InputError, match="storage that all nodes share"):
        work(task)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "spark"], "There is no engine 'spark'"),
        (["--engine", "ray", "--record", "x.jsonl"], "--record cannot be combined with --engine"),
        (["--engine", "ray", "--shard", "1/2"], "--shard cannot be combined with --engine"),
        (["--shards", "2"], "--shards requires --engine"),
        (["--engine", "ray", "--shards", "0"], "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_spread(words: list[str], said: str, tmp_path: Path) -> None:
    done = in_process([*command(*WORDS), *words], environment("http://127.0.0.1:9/v1", tmp_path / "data"))
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "RESULTS").exists()


@pytest.mark.slow
def test_a_lost_node_changes_nothing_and_costs_nothing(settings: Any, tmp_path: Path) -> None:
    whole = in_process([*command(*WORDS), "--output-dir", "WHOLE"], dict(os.environ))
    assert whole.exit_code == 0, whole.output
    settings.bodies.clear()
    (tmp_path / "data").rename(tmp_path / "data-of-the-whole")  # with its response cache
    with two_nodes() as (cluster, nodes):
        env = {**os.environ, "RAY_ADDRESS": cluster.address}
        words = [*command(*WORDS), "--engine", "ray", "--shards", "4"]
        with subprocess.Popen(
            [sys.executable, "-m", "benchmarks.runner", *words],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as driver:
            started = time.monotonic()
            while len(settings.bodies) < 6 and time.monotonic() - started < 120:
                time.sleep(0.01)
            cluster.remove_node(nodes[0], allow_graceful=False)
            _, err = driver.communicate(timeout=240)
    assert driver.returncode == 0, err
    (merged,) = (folder for folder in (tmp_path / "RESULTS").iterdir() if not folder.name.startswith("."))
    assert timeless(merged) == timeless(next((tmp_path / "WHOLE").iterdir()))
    assert not list((tmp_path / "RESULTS").glob(".spread-*")), "the merged run has it all"
    received = Counter(
        row["request"] for row in lines(merged / "calls.jsonl") if not row["cached"] and not row["error"]
    )
    assert set(received.values()) == {1}, "a reply that was received is never paid for again"
    asked = Counter(json.dumps(body, sort_keys=True) for body in settings.bodies)
    assert sum(asked.values()) - len(asked) <= 2, "only what was in progress on the lost node is asked again"

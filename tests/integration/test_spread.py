"""A run distributed over a cluster gives the same result as one run, even if a node is lost midway."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from benchmarks.run import on_ray
from benchmarks.run.config import RunConfig, RunOptions
from benchmarks.run.on_ray import ShardTask, tasks_of, work
from benchmarks.run.provenance import one_model
from meta_agent_rag.errors import SettingsError
from meta_agent_rag.retrieval.encoders.cluster import join
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import disagreeing, loopback_server
from tests.integration.test_runner import command, environment, in_process, lines, only_run, succeeded, summary_of

ROOT = Path(__file__).parents[2]
WORDS = ("--n", "4", "--method", "metarag,standard_rag", "--concurrency", "1")
OF_A_NODE = {"FLASH_MODEL": "of-the-node", "MAX_METACOGNITIVE_ROUNDS": "3", "LOOP_WITHOUT": "vote", "TIERS": "by_stage"}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Make this process and its children use a loopback server."""
    with loopback_server(disagreeing(0.05)) as server:
        for name, value in environment(server.base_url, tmp_path / "data").items():
            monkeypatch.setenv(name, value)
        yield server


def holding(folder: Path, *secrets: bytes) -> list[Path]:
    """The files in a folder that contain a secret."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    return [file for file in files if any(secret in file.read_bytes() for secret in secrets)]


@contextmanager
def two_nodes() -> Iterator[tuple[Any, list[Any]]]:
    """Start a cluster on this machine: a head without workers and two nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    small: dict[str, Any] = {"object_store_memory": 100 * 1024 * 1024}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
    try:
        nodes = [cluster.add_node(num_cpus=1, **small) for _ in range(2)]
        cluster.wait_for_nodes()
        yield cluster, nodes
    finally:
        cluster.shutdown()


def tasks(folder: Path, count: int, *assignments: str) -> list[ShardTask]:
    """The shards of a run of six questions and two methods."""
    settings = one_model(Settings.load(assignments))
    methods = ("metarag", "standard_rag")
    config = RunConfig(dataset="sample", mode="gold", methods=methods, n=6, concurrency=1, settings=settings)
    return tasks_of(config, RunOptions(), folder, count)


def in_place_of_ray(monkeypatch: pytest.MonkeyPatch, carried_out: Callable[..., Any], size: int = 2) -> None:
    monkeypatch.setattr(on_ray, "join", lambda wanted: size)
    monkeypatch.setattr(on_ray, "carried_out", carried_out)


def in_sequence(tasks: Sequence[ShardTask]) -> Iterator[tuple[ShardTask, str]]:
    return ((task, work(task)) for task in tasks)


@pytest.mark.slow
def test_a_distributed_run_is_continued_by_the_same_command(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing_one(tasks: Sequence[ShardTask]) -> Iterator[tuple[ShardTask, str]]:
        yield from in_sequence(tasks[:-1])
        yield tasks[-1], "the node caught fire"

    in_place_of_ray(monkeypatch, losing_one)
    words = [*command(*WORDS), "--engine", "ray", "--display", "json"]
    first = in_process([*words, "--cost-limit", "5"], dict(os.environ))
    assert first.exit_code == 1
    assert "Shard 2/2: the node caught fire" in first.stderr
    assert "1 of 2 shards did not finish. The same command continues them" in first.stderr
    in_place_of_ray(monkeypatch, in_sequence, size=3)
    other = in_process([*words, "--shards", "3"], dict(os.environ))
    assert other.exit_code == 2
    assert "has 2 shards; give --shards 2 to continue it" in other.stderr
    again = succeeded(words, dict(os.environ))
    assert json.loads(again.stdout)["summary"]["methods"]["metarag"]["n"] == 4
    assert json.loads((only_run(tmp_path) / "config.json").read_text())["settings"]["cost_limit_usd"] == 5, "kept"
    asked = [json.dumps(body, sort_keys=True) for body in settings.bodies]
    assert len(asked) == len(set(asked)), "finished questions are not asked again"


@pytest.mark.slow
def test_the_cost_limit_is_shared_by_all_shards(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_place_of_ray(monkeypatch, in_sequence)
    limited = [*command(*WORDS), "--engine", "ray", "--cost-limit", "0.004"]
    done = in_process(
        limited, {**os.environ, "LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k", "FLASH_MODEL": "gpt-4.1"}
    )
    assert done.exit_code == 1
    assert "of the limit of 0.002 USD" in done.stderr
    rows = [row for file in (tmp_path / "RESULTS").rglob("calls.jsonl") for row in lines(file)]
    assert sum(float(row["paid_usd"] or 0) for row in rows) <= 0.004


def test_keys_of_endpoints_travel_with_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = tmp_path / "roles.yaml"
    roles.write_text("endpoints: {mine: {base_url: 'http://h:1/v1', model: m, key: MY_KEY}}\nroles: {critic: mine}\n")
    monkeypatch.setenv("MY_KEY", "sk-endpoint")
    (task,) = tasks(tmp_path, 1, "LLM_PROVIDER=deepseek", "DEEPSEEK_API_KEY=sk-none", f"MODEL_ROLES={roles}")
    assert pickle.loads(pickle.dumps(task)).keys == {"MY_KEY": SecretStr("sk-endpoint")}
    assert "sk-" not in repr(task)


def test_a_node_without_the_folder_is_rejected(tmp_path: Path) -> None:
    (task,) = tasks(tmp_path / "SHARDS", 1, "LLM_PROVIDER=deepseek", "DEEPSEEK_API_KEY=sk-none")
    assert "storage that all nodes share" in work(replace(task, home=str(tmp_path / "elsewhere")))


@pytest.mark.slow
def test_a_lost_node_changes_no_result_and_adds_no_cost(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeeded([*command(*WORDS), "--output-dir", "WHOLE"], dict(os.environ))
    settings.bodies.clear()
    (tmp_path / "data").rename(tmp_path / "data-of-the-whole")  # including its response cache
    here = dict(os.environ)
    for name, value in {**OF_A_NODE, "DEEPSEEK_API_KEY": "sk-of-the-nodes"}.items():
        monkeypatch.setenv(name, value)  # nodes have the environment in which they were started
    with two_nodes() as (cluster, nodes):
        env = {**here, "RAY_ADDRESS": cluster.address}
        words = [*command(*WORDS), "--engine", "ray", "--shards", "4"]
        # as documented: `uv run` must not make Ray build its own environments
        uv = shutil.which("uv")
        python = [uv, "run", "--no-sync", "--project", str(ROOT), "python"] if uv else [sys.executable]
        with subprocess.Popen(
            [*python, "-m", "benchmarks.runner", *words],
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
        assert not holding(Path(nodes[1].get_session_dir_path()), b"sk-planted-secret")
    assert driver.returncode == 0, err
    (merged,) = (folder for folder in (tmp_path / "RESULTS").iterdir() if not folder.name.startswith("."))
    assert summary_of(merged) == summary_of(next((tmp_path / "WHOLE").iterdir()))
    assert not list((tmp_path / "RESULTS").glob(".spread-*")), "the merged run is complete"
    received = Counter(
        row["request"] for row in lines(merged / "calls.jsonl") if not row["cached"] and not row["error"]
    )
    assert set(received.values()) == {1}, "a reply that was received is never paid for again"
    asked = Counter(json.dumps(body, sort_keys=True) for body in settings.bodies)
    assert sum(asked.values()) - len(asked) <= 2, "only calls in progress on the lost node are repeated"


def test_a_cluster_that_is_not_there_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(SettingsError, match=r"could not reach the Ray cluster at RAY_ADDRESS='127\.0\.0\.1:9'"):
        join("--engine ray")

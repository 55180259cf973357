"""A run distributed over a cluster gives the same result as one run, even if a node is lost midway."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.merge import merge_folders
from benchmarks.run.config import RunConfig, RunOptions
from benchmarks.run.on_ray import ENGINES, ShardEngine, ShardOutcome, ShardTask, tasks_of, work
from benchmarks.run.serving import one_model
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import ServerReply, always, disagreeing, loopback_server
from tests.cluster import two_nodes
from tests.integration.test_runner import QUESTIONS, command, environment, in_process, lines, only_run
from tests.integration.test_shards import timeless

ROOT = Path(__file__).parents[2]
WORDS = ("--n", "6", "--method", "metarag,standard_rag", "--concurrency", "1")
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


def tasks(folder: Path, count: int, *assignments: str) -> list[ShardTask]:
    """The shards of a run of six questions and two methods."""
    settings = one_model(Settings.load(assignments))
    methods = ("metarag", "standard_rag")
    config = RunConfig(dataset="sample", mode="gold", methods=methods, n=6, concurrency=1, settings=settings)
    return tasks_of(config, RunOptions(), folder, count)


def test_shards_run_one_by_one_merge_into_one_run(settings: Any, tmp_path: Path) -> None:
    own = tasks(tmp_path / "SHARDS", 3)
    outcomes = [work(task) for task in own]
    assert [(outcome.shard, outcome.error) for outcome in outcomes] == [("1/3", ""), ("2/3", ""), ("3/3", "")]
    asked = len(settings.bodies)
    again = [work(task) for task in own]
    assert [outcome.folder for outcome in again] == [outcome.folder for outcome in outcomes]
    assert len(settings.bodies) == asked, "finished questions are not asked again"
    merged, summary = merge_folders([outcome.folder or "" for outcome in outcomes], tmp_path, plots=False)
    assert summary["methods"]["metarag"]["n"] == 6
    assert len(lines(merged.path / "samples.jsonl")) == 12


def test_a_failed_shard_reports_the_reason(settings: Any, tmp_path: Path) -> None:
    (task,) = tasks(tmp_path / "SHARDS", 1, "COST_LIMIT_USD=0.0000001")
    outcome = work(task)
    assert outcome.at_limit
    assert "raise the limit to continue" in outcome.error


def test_a_node_with_other_settings_runs_the_shard_with_those_of_the_run(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_another_node(tasks: Sequence[ShardTask]) -> list[ShardOutcome]:
        with pytest.MonkeyPatch.context() as node:
            for name, value in {**OF_A_NODE, "DEEPSEEK_API_KEY": "sk-of-the-node"}.items():
                node.setenv(name, value)
            return [work(task) for task in tasks]

    monkeypatch.setitem(ENGINES, "ray", ShardEngine(size=lambda: 2, carry_out=on_another_node))
    done = in_process([*command(*WORDS), "--engine", "ray", "--set", "RETRIEVAL_TOP_K=4"], dict(os.environ))
    assert done.exit_code == 0, done.output
    whole = in_process([*command(*WORDS), "--output-dir", "WHOLE", "--set", "RETRIEVAL_TOP_K=4"], dict(os.environ))
    assert whole.exit_code == 0, whole.output
    merged, plain = only_run(tmp_path), next((tmp_path / "WHOLE").iterdir())
    configs = [json.loads((folder / "config.json").read_text()) for folder in (merged, plain)]
    assert configs[0]["settings"] == configs[1]["settings"]
    assert configs[0]["endpoints"] == configs[1]["endpoints"]
    assert timeless(merged) == timeless(plain)
    assert {body["model"] for body in settings.bodies} == {"deepseek-v4-flash"}
    assert not holding(merged, b"sk-planted-secret", b"sk-of-the-node")


def test_a_distributed_run_is_resumed_with_the_same_number_of_shards(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uses a local engine that runs the shards in sequence, and three CPUs the next time."""
    sizes = [2, 3]
    lost: list[str] = []

    def carry_out(tasks: Sequence[ShardTask]) -> list[ShardOutcome]:
        if not lost:
            lost.append(tasks[-1].shard)
            done = [work(task) for task in tasks[:-1]]
            return [*done, ShardOutcome(shard=tasks[-1].shard, error="The node caught fire.")]
        return [work(task) for task in tasks]

    monkeypatch.setitem(ENGINES, "ray", ShardEngine(size=lambda: sizes.pop(0), carry_out=carry_out))
    words = [*command(*WORDS), "--engine", "ray", "--display", "json"]
    first = in_process(words, dict(os.environ))
    assert first.exit_code == 1
    assert "Shard 2/2: The node caught fire." in first.stderr
    assert "1 of 2 shards did not finish. The same command continues them" in first.stderr
    other = in_process([*words, "--shards", "3"], dict(os.environ))
    assert other.exit_code == 2
    assert "has 2 shards; give --shards 2 to continue it" in other.stderr
    sizes.append(3)
    again = in_process([*words, "--cost-limit", "5"], dict(os.environ))
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["summary"]["methods"]["metarag"]["n"] == 6
    assert not list((tmp_path / "RESULTS").glob(".spread-*"))


def uneven(body: dict[str, Any]) -> ServerReply:
    """A reply that is expensive for the questions of the second of two shards."""
    questions = [one["question"] for one in json.loads(QUESTIONS.read_text())[1:6:2]]
    tokens = 1200 if any(question in body["messages"][-1]["content"] for question in questions) else 20
    return replace(disagreeing()(body), usage={"prompt_tokens": 100, "completion_tokens": tokens})


UNEVEN = ("--limit", "1-6", "--method", "standard_rag", "--concurrency", "1", "--engine", "ray", "--shards", "2")


def spent_in(folder: Path) -> float:
    return sum(float(row["cost_usd"] or 0) for file in folder.rglob("calls.jsonl") for row in lines(file))


def test_the_cost_limit_holds_for_all_shards_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ShardEngine(size=lambda: 2, carry_out=lambda tasks: [work(task) for task in tasks])
    monkeypatch.setitem(ENGINES, "ray", engine)
    with loopback_server(uneven) as server:
        env = {**environment(server.base_url, tmp_path / "data"), "PRICE_AS": "gpt-4.1-mini"}
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        low = in_process([*command(*UNEVEN), "--cost-limit", "0.006"], dict(os.environ))
        assert low.exit_code == 1
        spent = spent_in(tmp_path / "RESULTS")
        assert 0.003 < spent <= 0.006, "more than one share"
        assert (
            f"1 of 2 shards did not finish. The run has spent {spent:.6f} USD of its limit of 0.006 USD" in low.stderr
        )
        assert len(low.stderr.strip().splitlines()) == 1
        enough = in_process([*command(*UNEVEN), "--cost-limit", "0.007"], dict(os.environ))
    assert enough.exit_code == 0, enough.output
    merged = only_run(tmp_path)
    assert [row["error"] for row in lines(merged / "samples.jsonl")] == [None] * 6
    assert len(server.bodies) == 6, "nothing is paid twice"
    assert json.loads((merged / "config.json").read_text())["settings"]["cost_limit_usd"] == 0.007


def test_a_shard_whose_every_question_failed_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_server(always(ServerReply(status=400))) as server:
        for name, value in environment(server.base_url, tmp_path / "data").items():
            monkeypatch.setenv(name, value)
        engine = ShardEngine(size=lambda: 3, carry_out=lambda tasks: [work(task) for task in tasks])
        monkeypatch.setitem(ENGINES, "ray", engine)
        words = [*command(*WORDS), "--engine", "ray", "--fail-on-error", "1"]
        done = in_process(words, dict(os.environ))
    assert done.exit_code == 1, done.output
    assert "metarag and standard_rag answered no question" in done.stderr
    merged = only_run(tmp_path)
    assert [row["error"] is None for row in lines(merged / "samples.jsonl")] == [False] * 12
    with loopback_server(disagreeing()) as mended:
        env = {**os.environ, "LLM_BASE_URL": mended.base_url}
        again = in_process(["--resume", str(merged), "--retry-failed", "--display", "none", "--no-plots"], env)
    assert again.exit_code == 0, again.output
    assert [row["error"] for row in lines(merged / "samples.jsonl")] == [None] * 12


def test_a_node_without_the_folder_is_rejected(tmp_path: Path) -> None:
    (task,) = tasks(tmp_path / "SHARDS", 1, "LLM_PROVIDER=deepseek", "DEEPSEEK_API_KEY=sk-none")
    assert "storage that all nodes share" in work(replace(task, home=str(tmp_path / "elsewhere"))).error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "spark"], "There is no engine 'spark'"),
        (["--engine", "spark", "--dry-run"], "--engine and --dry-run are mutually exclusive"),
        (["--engine", "ray", "--record", "x.jsonl"], "--engine and --record are mutually exclusive"),
        (["--engine", "ray", "--shard", "1/2"], "--engine and --shard are mutually exclusive"),
        (["--shards", "2"], "--shards requires --engine"),
        (["--engine", "ray", "--shards", "0"], "greater than or equal to 1"),
    ],
)
def test_invalid_distributed_options_are_rejected(words: list[str], said: str, tmp_path: Path) -> None:
    done = in_process([*command(*WORDS), *words], environment("http://127.0.0.1:9/v1", tmp_path / "data"))
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "RESULTS").exists()


def test_a_cluster_that_cannot_be_reached_is_reported_in_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    env = environment("http://127.0.0.1:9/v1", tmp_path / "data") | {"RAY_ADDRESS": "no address"}
    done = in_process([*command(*WORDS), "--engine", "ray"], env)
    assert done.exit_code == 2
    assert "--engine ray could not join or start a Ray cluster" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.slow
def test_two_nodes_share_one_cost_limit_and_show_their_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with loopback_server(uneven) as server:
        for name, value in {**environment(server.base_url, tmp_path / "data"), "PRICE_AS": "gpt-4.1-mini"}.items():
            monkeypatch.setenv(name, value)
        shown = ("--display", "plain")
        with two_nodes() as (cluster, _):
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.runner", *command(*UNEVEN, "--cost-limit", "0.007", *shown)],
                env={**os.environ, "RAY_ADDRESS": cluster.address},
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
    assert done.returncode == 0, done.stderr
    assert len(server.bodies) == 6, "nothing is paid twice"
    reported = done.stderr.splitlines()
    assert reported[0].startswith("Model: deepseek-v4-flash at 127.0.0.1")
    assert "Shard 2/2 stopped at its share of the cost limit." in reported
    assert "Shard 1/2 is finished (1 of 2)." in reported
    assert reported[-1] == "Shard 2/2 is finished (2 of 2)."
    assert "standard_rag" in done.stdout, "the table"
    assert f"Run folder: RESULTS/{only_run(tmp_path).name}" in done.stdout


@pytest.mark.slow
def test_a_lost_node_changes_no_result_and_adds_no_cost(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = in_process([*command(*WORDS), "--output-dir", "WHOLE"], dict(os.environ))
    assert whole.exit_code == 0, whole.output
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
    assert timeless(merged) == timeless(next((tmp_path / "WHOLE").iterdir()))
    assert not list((tmp_path / "RESULTS").glob(".spread-*")), "the merged run is complete"
    received = Counter(
        row["request"] for row in lines(merged / "calls.jsonl") if not row["cached"] and not row["error"]
    )
    assert set(received.values()) == {1}, "a reply that was received is never paid for again"
    asked = Counter(json.dumps(body, sort_keys=True) for body in settings.bodies)
    assert sum(asked.values()) - len(asked) <= 2, "only calls in progress on the lost node are repeated"

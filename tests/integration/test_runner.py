"""The benchmark from the command line, against a loopback server that speaks DeepSeek's dialect."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.runner import app
from meta_agent_rag.testing.server import LoopbackServer, ServerReply, disagreeing, helpful, loopback_server

ROOT = Path(__file__).parents[2]
QUESTIONS = ROOT / "benchmarks" / "sample" / "questions.json"


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """A server whose replies never agree, so that the loop fires on every question."""
    with loopback_server(disagreeing(0.02)) as running:
        yield running


def environment(base_url: str, data_dir: Path) -> dict[str, str]:
    """The environment of a run against a loopback DeepSeek, without the developer's settings."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "LLM_PROVIDER": "deepseek",
        "LLM_BASE_URL": base_url,
        "DEEPSEEK_API_KEY": "sk-planted-secret",
        "MONITOR_ENCODER": "hash-64",
        "ENCODER": "hash-64",
        "MARAG_DATA_DIR": str(data_dir),
        "MONITOR_POLICY": "agreement",  # makes few enough calls to count by hand
        "MAX_METACOGNITIVE_ROUNDS": "1",
        "LLM_MAX_RETRIES": "0",
    }


def command(*words: str) -> list[str]:
    """The runner's arguments, without plots, which are slow and are covered by `test_recorded_run`."""
    return ["--dataset", "sample", "--display", "none", "--no-plots", *words]


def in_process(words: Sequence[str], env: Mapping[str, str]) -> Result:
    """Run the command in this process, which is faster."""
    return CliRunner().invoke(app, command(*words), env=dict(env))


def succeeded(words: Sequence[str], env: Mapping[str, str]) -> Result:
    """Run the command, which must succeed."""
    done = in_process(words, env)
    assert done.exit_code == 0, done.output
    return done


def only_run(folder: Path) -> Path:
    """The one run folder below `RESULTS`."""
    (found,) = (folder / "RESULTS").iterdir()
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    """The complete records of a JSONL file."""
    records = []
    for line in path.read_bytes().split(b"\n"):
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def summary_of(run_folder: Path) -> dict[str, Any]:
    """The summary without time-dependent values."""
    summary: dict[str, Any] = json.loads((run_folder / "summary.json").read_text())
    for figures in summary["methods"].values():
        del figures["latency_s"]
    return summary


def test_ledger_rows_match_the_calls_received_by_the_server(server: LoopbackServer, tmp_path: Path) -> None:
    env = environment(server.base_url, tmp_path / "data")
    assert in_process(["--n", "3"], env).exit_code == 0
    rows = lines(only_run(tmp_path) / "calls.jsonl")
    assert len(rows) == len(server.bodies)
    assert all(row["cache_hit_tokens"] == 60 and row["cache_miss_tokens"] == 40 for row in rows)
    assert {row["model"] for row in rows} == {"deepseek-v4-flash"}, "every method uses the same model"
    assert {row["role"] for row in rows} == {"writer", "second_route", "critic"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mode", "nope"], "There is no mode 'nope'"),
        (["--limit", "1-3", "--n", "3"], "are mutually exclusive"),
        (["--resume", "nothing"], "not a run folder"),
        (["--set", "NOPE=1"], "There is no setting 'NOPE'"),
        (["--concurrency", "0"], "--concurrency must be at least 1, not 0"),
        (["--corpus", "mine"], "--corpus requires --mode open_domain"),
        (["--mode", "open_domain", "--corpus", "mine"], "mine"),
        (["--without-deficit", "nope"], "There is no deficit 'nope'"),
        (["--cost-limit", "-1"], "COST_LIMIT_USD"),
        (["--set", "MONITOR_POLICY=nope"], "There is no monitor policy 'nope'"),
        (["--method", "metarag", "--equal", "tokens"], "name both, as --method metarag,self_consistency"),
        (["--method", "self_consistency", "--equal", "tokens"], "name both, as --method metarag,self_consistency"),
        (["--method", "metarag,self_consistency", "--equal", "euros"], "--equal 'euros' is unknown"),
        (["--record", "run.txt"], "must end in .jsonl"),
        (["--replay", "x.jsonl", "--resume", "y"], "are mutually exclusive"),
        (["--replay", "x.jsonl", "--record", "y.jsonl"], "are mutually exclusive"),
        (["--retry-failed"], "requires --resume"),
        (["--n", "3", "--sample-id", "a"], "are mutually exclusive"),
        (["--sample-id", "nope"], "No question 'nope'"),
        (["--dry-run"], "run a few questions first, with --n 3"),
        (["--engine", "spark"], "There is no engine 'spark'"),
        (["--engine", "ray", "--record", "x.jsonl"], "--engine and --record are mutually exclusive"),
        (["--engine", "ray", "--shard", "1/2"], "--engine and --shard are mutually exclusive"),
        (["--shards", "2"], "--shards requires --engine"),
    ],
)
def test_wrong_input_is_reported_in_one_sentence_with_exit_code_2(tmp_path: Path, words: list[str], said: str) -> None:
    done = in_process(words, environment("http://127.0.0.1:9/v1", tmp_path / "data"))
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    sentences = [line for line in done.stderr.strip().splitlines() if not line.startswith("Model: ")]
    assert len(sentences) == 1
    assert isinstance(done.exception, SystemExit)
    if "--corpus" not in words:
        assert not (tmp_path / "RESULTS").exists(), "a run that cannot start creates no folder"


@pytest.mark.slow
def test_a_run_whose_key_is_revoked_keeps_its_answers(tmp_path: Path) -> None:
    replies = iter(range(10_000))

    def revoked_later(body: dict[str, Any]) -> ServerReply:
        return helpful()(body) if next(replies) < 7 else ServerReply(status=401)

    with loopback_server(revoked_later) as server:
        env = environment(server.base_url, tmp_path / "data")
        done = in_process(["--n", "6", "--concurrency", "1"], env)
        assert done.exit_code == 2
        assert "Stopped after 3 of 6 answers" in done.stderr
        folder = only_run(tmp_path)
        assert json.loads((folder / "summary.json").read_text())["methods"]["metarag"]["answered"] == 3
    with loopback_server(helpful()) as server:  # at another URL
        env["LLM_BASE_URL"] = server.base_url
        asked = len(server.bodies)
        assert in_process(["--resume", str(folder)], env).exit_code == 0
        assert len(server.bodies) - asked == 2 * 3 - 1, "three questions remain, and earlier replies are cached"


@pytest.mark.slow
def test_an_empty_account_ends_the_run_within_two_seconds(tmp_path: Path) -> None:
    reported: list[float] = []

    def behaviour(body: dict[str, Any]) -> ServerReply:
        if not reported and len(asked.bodies) < 8:
            return replace(helpful()(body), seconds=30.0)
        reported.append(time.monotonic())
        return ServerReply(status=402)

    with loopback_server(behaviour) as asked:
        done = in_process(["--n", "12", "--concurrency", "8"], environment(asked.base_url, tmp_path / "data"))
        seconds = time.monotonic() - reported[0]
    assert done.exit_code == 2, done.stderr
    assert "(402)" in done.stderr
    assert "Continue with: --resume" in done.stderr
    assert seconds < 10  # two, plus the time a busy machine takes to write the report and exit
    assert sum(row["error"] == "cancelled" for row in lines(only_run(tmp_path) / "calls.jsonl")) == 7


def test_json_display_prints_only_json(server: LoopbackServer, tmp_path: Path) -> None:
    done = in_process(["--n", "2", "--display", "json"], environment(server.base_url, tmp_path / "data"))
    first, second, rest = done.stdout.split("\n", 2)
    assert {json.loads(first)["method"], json.loads(second)["method"]} == {"metarag"}
    assert json.loads(rest)["summary"]["n"] == 2

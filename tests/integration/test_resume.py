"""A run is resumed only with its original configuration, by one process at a time, within its budget."""

import json
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks.run.folder import RunFolder
from meta_agent_rag.llm.ledger import read_ledger
from meta_agent_rag.testing.server import LoopbackServer, ServerReply, always, disagreeing, loopback_server
from tests.forked import RUNNER, forked
from tests.integration.test_runner import command, environment, in_process, lines, only_run, succeeded

pytestmark = pytest.mark.slow
Finished = tuple[LoopbackServer, dict[str, str], Path]


@pytest.fixture
def finished(tmp_path: Path) -> Iterator[Finished]:
    """A finished run of two questions, its model server and its environment."""
    with loopback_server(disagreeing()) as server:
        env = environment(server.base_url, tmp_path / "data")
        succeeded(["--n", "2", "--output-dir", str(tmp_path / "RESULTS")], env)
        yield server, env, only_run(tmp_path)


def refused(folder: Path, env: dict[str, str]) -> str:
    """What is said to resuming a run that cannot be resumed."""
    done = in_process(["--resume", str(folder)], env)
    assert done.exit_code == 2
    return done.stderr


def test_different_files_models_or_data_are_rejected(finished: Finished) -> None:
    _, env, folder = finished
    config = json.loads((folder / "config.json").read_text())
    changes: list[tuple[dict[str, Any], str]] = [
        ({"own_files": "0123456789ab"}, "different own files"),
        ({"provider": {"name": "openai"}}, "different provider"),
        ({"dataset": {}}, "different data"),
        ({"settings": []}, "is damaged (field 'settings': "),
        ({"experiment": {**config["experiment"], "methods": 1}}, "is damaged (field 'experiment.methods': "),
    ]
    for change, said in changes:
        (folder / "config.json").write_text(json.dumps({**config, **change}))
        assert said in refused(folder, env)
    (folder / "config.json").write_text("{}")
    assert "is damaged" in refused(folder, env)


def test_a_run_that_other_code_continues_says_so(finished: Finished) -> None:
    _, env, folder = finished
    config = json.loads((folder / "config.json").read_text())
    assert "different code" not in in_process(["--resume", str(folder)], env).stderr
    (folder / "config.json").write_text(json.dumps({**config, "commit": "0123abc"}))
    done = succeeded(["--resume", str(folder)], env)
    assert "different code: version" in done.stderr
    assert "(0123abc), then" in done.stderr
    noted = json.loads((folder / "config.json").read_text())["resumed_with"]
    assert noted == [{name: config[name] for name in ("version", "commit", "lock")}]
    assert "different code: version" in (folder / "report.md").read_text()
    in_process(["--resume", str(folder)], env)
    assert json.loads((folder / "config.json").read_text())["resumed_with"] == noted


@pytest.mark.parametrize(("change", "field"), [({"f1": float("nan")}, "f1"), ({"tokens": {}}, "tokens.prompt")])
def test_a_damaged_row_is_reported_in_one_sentence(finished: Finished, change: dict[str, object], field: str) -> None:
    server, env, folder = finished
    samples = folder / "samples.jsonl"
    first, second = lines(samples)
    asked = len(server.bodies)
    samples.write_text("".join(json.dumps(row) + "\n" for row in (first, {**second, **change})))
    said = refused(folder, env)
    assert f"damaged row, of 'metarag' for {second['id']!r} (field '{field}" in said
    assert str(samples) in said
    assert len(said.strip().splitlines()) == 1
    assert len(server.bodies) == asked
    samples.write_text(json.dumps(first) + "\n")
    assert in_process(["--resume", str(folder)], env).exit_code == 0
    assert [row["id"] for row in lines(samples)] == [first["id"], second["id"]]


def test_only_one_process_can_resume_a_run(finished: Finished) -> None:
    _, env, folder = finished
    (folder / ".record").write_text("what another process records\n")
    before = (folder / "config.json").read_bytes()
    with RunFolder(folder).locked():
        assert "running in another process" in refused(folder, {**env, "COST_LIMIT_USD": "7"})
    assert (folder / ".record").exists()
    assert (folder / "config.json").read_bytes() == before
    assert in_process(["--resume", str(folder)], env).exit_code == 0


def test_a_limit_that_cannot_be_kept_is_not_remembered(finished: Finished) -> None:
    _, env, folder = finished
    config = json.loads((folder / "config.json").read_text())
    config["provider"]["models"] = {"flash": "unheard-of", "pro": "unheard-of"}
    config["settings"] |= {"flash_model": "unheard-of", "pro_model": "unheard-of"}
    (folder / "config.json").write_text(json.dumps(config))
    done = in_process(["--resume", str(folder), "--cost-limit", "1"], env)
    assert (done.exit_code, "needs prices" in done.stderr) == (2, True), done.stderr
    assert in_process(["--resume", str(folder)], env).exit_code == 0


def test_a_retry_that_fails_keeps_the_earlier_answer(finished: Finished) -> None:
    _, env, folder = finished
    samples = folder / "samples.jsonl"
    rows = [{**row, "lost_calls": 1} for row in lines(samples)]
    samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with loopback_server(always(ServerReply(status=500))) as down:
        own = {**env, "LLM_BASE_URL": down.base_url, "MARAG_DATA_DIR": str(folder / "uncached")}
        in_process(["--resume", str(folder), "--retry-failed", "--fail-on-error", "1"], own)
    assert [row["error"] for row in lines(samples)] == [None, None]


def test_an_answer_is_kept_if_the_judge_stops_the_run(tmp_path: Path) -> None:
    def judged(body: dict[str, Any]) -> ServerReply:
        return ServerReply(status=401) if "reference answers" in json.dumps(body) else disagreeing()(body)

    with loopback_server(judged) as server:
        env = environment(server.base_url, tmp_path / "data")
        done = in_process(["--n", "2", "--concurrency", "1", "--judge", "--output-dir", str(tmp_path / "RESULTS")], env)
    assert done.exit_code == 2
    assert [(row["error"], row["judge"]) for row in lines(only_run(tmp_path) / "samples.jsonl")] == [(None, None)]


def test_sigterm_stops_a_run_like_ctrl_c(tmp_path: Path) -> None:
    with loopback_server(disagreeing(0.3)) as server:
        env = environment(server.base_url, tmp_path / "data")
        words = command("--n", "8", "--concurrency", "1", "--cost-limit", "1")
        child = forked(RUNNER, words, env, tmp_path)
        while len(server.bodies) < 2:
            assert child.running
            time.sleep(0.01)
        child.send(signal.SIGTERM)
        assert child.ended(10) == 130
    assert "Continue with: --resume" in child.err.read_text()
    rows = list(read_ledger(only_run(tmp_path) / "calls.jsonl"))
    cut = [row for row in rows if row.error == "cancelled"]
    assert cut, "a call in progress is recorded"
    assert all(row.paid_usd for row in cut), "its highest possible cost counts as paid"
    assert RunFolder(only_run(tmp_path)).paid_usd() >= sum(row.paid_usd or 0 for row in rows)


def test_killed_calls_count_towards_a_later_cost_limit(tmp_path: Path) -> None:
    slow = [True]
    quick = disagreeing()
    usage = {"prompt_tokens": 800, "completion_tokens": 300}

    def behaviour(body: dict[str, Any]) -> ServerReply:
        return replace(quick(body), seconds=20.0 if slow[0] else 0.0, usage=usage)

    with loopback_server(behaviour) as server:
        env = environment(server.base_url, tmp_path / "data")
        child = forked(RUNNER, command("--n", "6", "--concurrency", "6"), env, tmp_path)
        while len(server.bodies) < 6:
            assert child.running
            time.sleep(0.02)
        assert child.killed()
        slow[0] = False
        folder = only_run(tmp_path)
        unknown = RunFolder(folder).paid_usd()
        done = in_process(["--resume", str(folder), "--cost-limit", str(unknown)], env)
        assert done.exit_code == 1
        assert "or reserved for interrupted calls" in done.stderr
        assert len(server.bodies) == 6
    assert unknown > 6 * Decimal("0.0003")

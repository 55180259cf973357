"""Running a benchmark: lost calls, identical calls, early stops, the judge, and the first question."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.vectors import FloatMatrix
from meta_agent_rag.testing.server import ServerReply, disagreeing, helpful, loopback_server
from tests.integration.test_runner import environment, in_process, lines, only_run


@pytest.mark.slow
def test_answers_without_some_of_their_calls_are_reported_and_retried(tmp_path: Path) -> None:
    asked: list[str] = []

    def second_call_fails(body: dict[str, Any]) -> ServerReply:
        asked.append(body["model"])
        return ServerReply(status=503) if len(asked) == 2 else helpful()(body)

    with loopback_server(second_call_fails) as server:
        env = environment(server.base_url, tmp_path / "data")
        words = ["--limit", "1-2", "--mode", "supporting", "--concurrency", "1"]
        assert in_process(words, env).exit_code == 0
        folder = only_run(tmp_path)
        assert [row.get("lost_calls") for row in lines(folder / "samples.jsonl")] == [1, None]
        said = (
            "metarag: 1 answer had to do without 1 call that the server did not answer; `--resume RUN --retry-failed`"
        )
        assert said in (folder / "report.md").read_text()
        server.behaviour = helpful()
        assert in_process(["--resume", str(folder), "--retry-failed"], env).exit_code == 0
    assert "had to do without" not in (folder / "report.md").read_text()
    assert [row.get("lost_calls") for row in lines(folder / "samples.jsonl")] == [None, None]


@pytest.mark.slow
def test_identical_calls_in_one_run_are_paid_for_once(tmp_path: Path) -> None:
    with loopback_server(disagreeing(0.05)) as server:
        env = environment(server.base_url, tmp_path / "data")
        words = ["--n", "2", "--method", "metarag,metarag_paper,chain_of_thought,reflexion", "--concurrency", "8"]
        assert in_process(words, env).exit_code == 0
        asked = [json.dumps(body, sort_keys=True) for body in server.bodies]
    assert len(asked) == len(set(asked))


def test_the_judge_scores_each_distinct_answer_once(tmp_path: Path) -> None:
    with loopback_server(helpful(0.05)) as server:
        env = environment(server.base_url, tmp_path / "data")
        words = ["--n", "2", "--judge", "--sweep", "WRITER_TEMPERATURE=0,0.9"]
        words += ["--set", "RESPONSE_CACHE=false"]
        assert in_process(words, env).exit_code == 0
        judged = [body for body in server.bodies if "reference answers" in json.dumps(body)]
    assert len(judged) == 2, "one distinct answer to each of two questions, however many rows share it"
    assert {body["temperature"] for body in judged} == {0.0}
    rows = lines(only_run(tmp_path) / "samples.jsonl")
    assert {row["judge"] for row in rows} == {1.0}
    assert len(rows) == 4


@pytest.mark.slow
def test_a_stopped_run_keeps_calls_in_progress(tmp_path: Path) -> None:
    dear = {"prompt_tokens": 2000, "completion_tokens": 300, "prompt_cache_hit_tokens": 0}
    with loopback_server(lambda body: replace(disagreeing(0.05)(body), usage=dear)) as server:
        env = environment(server.base_url, tmp_path / "data")
        done = in_process(["--n", "8", "--concurrency", "8", "--cost-limit", "0.006"], env)
        assert done.exit_code == 1
        folder = only_run(tmp_path)
        assert not [row for row in lines(folder / "calls.jsonl") if row["error"] == "cancelled"]
        assert in_process(["--resume", str(folder), "--cost-limit", "5"], env).exit_code == 0
        asked = [json.dumps(body, sort_keys=True) for body in server.bodies]
    assert len(asked) == len(set(asked))


START_S = 1.5


@pytest.mark.slow
def test_the_first_question_does_not_wait_for_the_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode, loaded = HashEncoder._encode, list[bool]()

    def slow_to_start(self: HashEncoder, texts: Sequence[str]) -> FloatMatrix:
        if not loaded:
            loaded.append(True)
            time.sleep(START_S)
        return encode(self, texts)

    monkeypatch.setattr(HashEncoder, "_encode", slow_to_start)
    with loopback_server(disagreeing(0.01)) as server:
        env = environment(server.base_url, tmp_path / "data")
        assert in_process(["--n", "3", "--concurrency", "1"], env).exit_code == 0
    assert loaded
    assert max(row["latency_s"] for row in lines(only_run(tmp_path) / "samples.jsonl")) < START_S

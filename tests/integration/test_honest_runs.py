"""What a run must not give: costs beyond its limit, failures as scores, waiting as speed, another model's answers."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.datasets import load_questions
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing.server import LoopbackServer, ServerReply, helpful, loopback_server
from tests.integration.test_runner import QUESTIONS, ROOT, environment, in_process, lines, only_run, succeeded

DEAR = {"prompt_tokens": 1000, "completion_tokens": 100}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with loopback_server(helpful()) as running:
        yield running


@pytest.fixture
def env(server: LoopbackServer, tmp_path: Path) -> dict[str, str]:
    # the same price at any hour
    own = {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "sk-planted-secret", "FLASH_MODEL": "gpt-4.1"}
    return {**environment(server.base_url, tmp_path / "data"), **own}


def figures(folder: Path, method: str = "standard_rag") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())["methods"][method]
    return found


def paid(folder: Path) -> float:
    return sum(float(row["paid_usd"] or 0) for row in lines(folder / "calls.jsonl"))


def asked(body: Mapping[str, Any]) -> str:
    return json.dumps(body["messages"])


def test_a_resumed_run_keeps_its_cost_limit(server: LoopbackServer, env: dict[str, str], tmp_path: Path) -> None:
    server.behaviour = lambda body: replace(helpful()(body), usage=DEAR)
    words = ["--n", "6", "--method", "standard_rag", "--concurrency", "1"]
    assert in_process([*words, "--cost-limit", "0.012"], env).exit_code == 1
    folder = only_run(tmp_path)
    spent = paid(folder)
    for more in ([], ["--retry-failed"]):
        again = in_process(["--resume", str(folder), *more], env)
        assert again.exit_code == 1, again.output
        assert "of the limit of 0.012 USD" in again.stderr
        assert paid(folder) == spent <= 0.012
    assert in_process(["--resume", str(folder), "--cost-limit", "0.015"], env).exit_code == 1
    assert json.loads((folder / "config.json").read_text())["settings"]["cost_limit_usd"] == 0.015
    assert spent < paid(folder) <= 0.015, "what the whole run has paid counts"
    assert in_process(["--resume", str(folder), "--cost-limit", "1"], env).exit_code == 0
    assert figures(folder)["answered"] == 6


def test_questions_never_reached_are_not_scored(server: LoopbackServer, env: dict[str, str], tmp_path: Path) -> None:
    golds = {row["question"]: row["answer"] for row in json.loads(QUESTIONS.read_text())}

    def right(body: dict[str, Any]) -> ServerReply:
        gold = next(gold for question, gold in golds.items() if json.dumps(question)[1:-1] in asked(body))
        reply = {**json.loads(helpful()(body).text), "answer": gold, "short_answer": gold}
        return ServerReply(text=json.dumps(reply), usage=DEAR)

    server.behaviour = right
    words = ["--n", "8", "--method", "standard_rag", "--concurrency", "1", "--cost-limit", "0.015"]
    assert in_process(words, env).exit_code == 1
    found = figures(only_run(tmp_path))
    assert 0 < found["answered"] < 8
    assert (found["em"], found["errors"], found["unreached"]) == (100.0, 0, 8 - found["answered"])
    report = (only_run(tmp_path) / "report.md").read_text()
    assert f"standard_rag answered {found['answered']} of 8, 0 failed" in report


def test_a_run_stops_above_a_tenth_of_failures(server: LoopbackServer, env: dict[str, str], tmp_path: Path) -> None:
    server.behaviour = lambda body: ServerReply(status=400)
    stopped = in_process(["--n", "30", "--method", "standard_rag", "--concurrency", "1"], env)
    assert stopped.exit_code == 1
    assert "4 answers of 'standard_rag' failed, more than --fail-on-error 0.1 allows" in stopped.stderr
    folder = only_run(tmp_path)
    assert f"Continue with: --resume RESULTS/{folder.name} --retry-failed" in stopped.stderr
    assert (figures(folder)["em"], figures(folder)["errors"], figures(folder)["unreached"]) == (None, 4, 26)
    server.behaviour = helpful()
    succeeded(["--resume", str(folder), "--retry-failed"], env)
    assert (figures(folder)["answered"], figures(folder)["errors"]) == (30, 0)
    rows = lines(folder / "samples.jsonl")
    assert len(rows) == 30, "the rows of failed tries are gone"


def test_a_method_without_an_answer_is_no_result(server: LoopbackServer, env: dict[str, str], tmp_path: Path) -> None:
    server.behaviour = lambda body: ServerReply(status=400) if "<passage n=" in asked(body) else helpful()(body)
    words = ["--n", "4", "--method", "standard_rag,closed_book", "--fail-on-error", "1"]
    done = in_process([*words, "--display", "plain"], env)
    assert done.exit_code == 1
    assert "standard_rag answered no question; the first failed with" in done.stderr
    folder = only_run(tmp_path)
    assert "comparison" not in json.loads((folder / "summary.json").read_text()), "nothing to compare"
    assert "standard_rag answered 0 of 4, 4 failed" in (folder / "report.md").read_text()


def test_indexing_is_not_a_methods_latency(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    encode = HashEncoder.encode_passages

    def slowly(self: HashEncoder, texts: Sequence[str]) -> Any:
        time.sleep(1.5 if len(texts) > 1 else 0.0)
        return encode(self, texts)

    monkeypatch.setattr(HashEncoder, "encode_passages", slowly)
    for number, methods in enumerate(("standard_rag,ircot", "ircot,standard_rag")):
        words = ["--n", "2", "--method", methods, "--concurrency", "1", "--output-dir", str(number)]
        assert in_process(words, env).exit_code == 0
        (folder,) = (tmp_path / str(number)).iterdir()
        assert max(row["latency_s"] for row in lines(folder / "samples.jsonl")) < 1.5


def test_waiting_is_told_apart_from_working(server: LoopbackServer, env: dict[str, str], tmp_path: Path) -> None:
    failed: set[str] = set()

    def busy_at_first(body: dict[str, Any]) -> ServerReply:
        if asked(body) in failed:
            return replace(helpful()(body), seconds=0.05)
        failed.add(asked(body))
        return ServerReply(status=503, headers={"Retry-After": "2"})

    server.behaviour = busy_at_first
    words = ["--n", "2", "--method", "standard_rag", "--concurrency", "2"]
    assert in_process(words, {**env, "LLM_MAX_RETRIES": "2"}).exit_code == 0
    for row in lines(only_run(tmp_path) / "samples.jsonl"):
        assert row["waited_s"] >= 1.9, "the failed try and the pause after it"
        assert 0.05 <= row["latency_s"] - row["waited_s"] < row["waited_s"]
    latency = figures(only_run(tmp_path))["latency_s"]
    assert latency["waiting_mean"] >= 1.9
    assert latency["p50"] >= 0.05
    assert json.loads((only_run(tmp_path) / "config.json").read_text())["concurrency"] == 2


def test_the_model_that_answered_is_recorded(server: LoopbackServer, env: dict[str, str], tmp_path: Path) -> None:
    def of_another_name(body: dict[str, Any]) -> ServerReply:
        named = "swapped-2" if len(server.bodies) > 2 else "swapped-1"
        message = {"role": "assistant", "content": helpful()(body).text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        whole = {"id": "c", "object": "chat.completion", "created": 0, "model": named, "choices": [choice]}
        return ServerReply(body={**whole, "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}})

    server.behaviour = of_another_name
    done = succeeded(["--n", "4", "--method", "closed_book", "--concurrency", "1"], env)
    folder = only_run(tmp_path)
    assert figures(folder, "closed_book")["answered_by"] == {"swapped-1": 2, "swapped-2": 2}
    warning = "The model behind 'gpt-4.1' changed within the run, in calls: swapped-1 2, swapped-2 2."
    assert warning in done.stderr
    assert warning in (folder / "report.md").read_text()


def test_a_run_carries_its_settings(server: LoopbackServer, env: dict[str, str], tmp_path: Path) -> None:
    roles = tmp_path / "roles.yaml"
    roles.write_text(
        f"endpoints: {{mine: {{base_url: '{server.base_url}', model: m, key: MY_KEY}}}}\nroles: {{writer: mine}}\n"
    )
    server.behaviour = lambda body: ServerReply(status=400) if "Brannock" in asked(body) else helpful()(body)
    words = ["--limit", "1-12", "--mode", "supporting", "--method", "standard_rag", "--set", "RETRIEVAL_TOP_K=2"]
    own = {**env, "MY_KEY": "sk-mine"}
    done = succeeded([*words, "--fail-on-error", "1"], {**own, "MODEL_ROLES": str(roles)})
    folder = only_run(tmp_path)
    assert figures(folder)["errors"] > 0
    printed = done.stderr.partition("Retry them with: ")[2].split()
    server.behaviour = helpful()
    succeeded(printed, {**own, "RETRIEVAL_TOP_K": "9"})
    assert figures(folder)["errors"] == 0
    assert {body["model"] for body in server.bodies} == {"m"}
    refused = in_process([*printed, "--set", "RETRIEVAL_TOP_K=3"], own)
    assert refused.exit_code == 2
    assert "different values of RETRIEVAL_TOP_K; leave them out to resume it with its own" in refused.stderr


def test_a_finished_run_is_scored_again_without_answering(
    server: LoopbackServer, env: dict[str, str], tmp_path: Path
) -> None:
    rows = json.loads(QUESTIONS.read_text())[:3]
    (tmp_path / "zh.json").write_text(json.dumps([{**row, "answer": "浙江绍兴", "answer_aliases": []} for row in rows]))
    said = {**json.loads(helpful()({"messages": []}).text), "answer": "绍兴", "short_answer": "绍兴"}
    server.behaviour = lambda body: ServerReply(text=json.dumps(said))
    words = ["--data-file", "zh.json", "--n", "3", "--method", "standard_rag"]
    assert in_process(words, env).exit_code == 0
    folder = only_run(tmp_path)
    assert figures(folder)["f1"] == 0.0
    before = len(server.bodies)
    succeeded(["--rescore", str(folder), "--scorer", "multilingual", "--output-dir", "AGAIN"], env)
    assert len(server.bodies) == before
    (other,) = (tmp_path / "AGAIN").iterdir()
    assert round(figures(other)["f1"], 1) == 66.7
    config = json.loads((other / "config.json").read_text())
    assert (config["rescored"], config["experiment"]["scorer"]) == (folder.name, "multilingual")
    succeeded(["--rescore", str(other), "--judge", "--output-dir", "JUDGED"], env)
    assert all("reference answers" in asked(body) for body in server.bodies[before:])
    (third,) = (tmp_path / "JUDGED").iterdir()
    assert figures(third)["judged"] == 3
    assert {row["judge"] for row in lines(third / "samples.jsonl")} == {1.0}
    assert len(lines(third / "calls.jsonl")) == len(server.bodies)


def test_a_dry_run_never_relies_on_failures(server: LoopbackServer, env: dict[str, str], tmp_path: Path) -> None:
    server.behaviour = lambda body: ServerReply(status=400)
    assert in_process(["--n", "2", "--method", "closed_book", "--fail-on-error", "1"], env).exit_code == 1
    dry = in_process(["--n", "4", "--method", "closed_book", "--dry-run"], env)
    assert dry.exit_code == 2
    assert "No earlier run" in dry.stderr
    server.behaviour = lambda body: replace(helpful()(body), usage=None)
    assert in_process(["--n", "2", "--method", "closed_book", "--output-dir", "silent"], env).exit_code == 0
    (folder,) = (tmp_path / "silent").iterdir()
    assert figures(folder, "closed_book")["tokens"]["prompt"] is None
    words = ["--n", "4", "--method", "closed_book", "--dry-run", "--output-dir", "silent", "--display", "plain"]
    assert "closed_book: 4 calls, tokens unknown, price unknown" in in_process(words, env).stdout


def test_supporting_paragraphs_that_no_question_has_are_refused(env: dict[str, str], tmp_path: Path) -> None:
    rows = [{**row, "supporting_facts": []} for row in json.loads(QUESTIONS.read_text())[:3]]
    (tmp_path / "bare.json").write_text(json.dumps(rows))
    refused = in_process(["--data-file", "bare.json", "--mode", "supporting"], env)
    assert refused.exit_code == 2
    assert "--mode supporting gives the supporting paragraphs, but no question of 'sample' has any" in refused.stderr


@pytest.mark.slow
def test_help_is_quick() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-m", "benchmarks.runner", "--help"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "--fail-on-error" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.0, "seconds of CPU"


@pytest.mark.slow
def test_a_large_file_is_not_held_in_memory(tmp_path: Path) -> None:
    rows = json.loads(QUESTIONS.read_text())
    with (tmp_path / "large.json").open("w") as file:
        file.write("[")
        for number in range(20_000):
            file.write(("," if number else "") + json.dumps({**rows[number % len(rows)], "_id": f"q{number}"}))
        file.write("]")
    code = (
        "import resource, sys; from pathlib import Path; from benchmarks.run.sampling import draw\n"
        "from meta_agent_rag.datasets import load_questions\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "found = load_questions('sample', data_file=Path(sys.argv[1]), select=lambda all_: draw(all_, 5, 42))\n"
        "print(found.total, len(found.questions), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "large.json")]
    total, kept, more_kb = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert (total, kept) == ("20000", "5")
    assert int(more_kb) < 60_000
    assert load_questions("sample").total == len(rows)

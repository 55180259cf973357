"""A recorded run is replayed without calls, byte for byte."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.runner import app
from meta_agent_rag.errors import CorpusError
from meta_agent_rag.retrieval.hybrid import HybridRetriever, Retrieval
from meta_agent_rag.testing.server import LoopbackServer, ServerReply, disagreeing, loopback_server
from tests.integration.test_runner import QUESTIONS, environment, in_process, lines, only_run, succeeded

pytestmark = pytest.mark.slow

METHODS = "metarag,metarag_paper,standard_rag,self_consistency,ircot,closed_book"


def record(server: LoopbackServer, folder: Path, *words: str) -> tuple[Path, Path]:
    """Record a run; returns the record and the run folder."""
    kept = folder / "run.jsonl.gz"
    env = environment(server.base_url, folder / "data")
    succeeded([*words, "--record", str(kept), "--fail-on-error", "1"], env)
    return kept, only_run(folder)


def replay(kept: Path, folder: Path, *words: str) -> Any:
    """Replay a record without a key, server or corpus."""
    env = {"MARAG_DATA_DIR": str(folder / "other-data")}
    return CliRunner().invoke(
        app, ["--replay", str(kept), "--no-plots", "--output-dir", str(folder / "AGAIN"), *words], env=env
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run, in any order and without round durations."""
    found = sorted(lines(folder / "samples.jsonl"), key=lambda row: (row["id"], row["method"]))
    for row in found:
        for round_ in row["rounds"]:
            del round_["seconds"]
    return found


@pytest.mark.parametrize("mode", ["gold", "open_domain"])
def test_a_replay_makes_no_call_and_reproduces_the_bytes(tmp_path: Path, mode: str) -> None:
    first_asked = json.loads(QUESTIONS.read_text())[0]["question"]

    def broken_for_one(body: dict[str, Any]) -> ServerReply:
        asked = json.dumps(body["messages"], ensure_ascii=False)
        return ServerReply(status=418) if first_asked in asked else disagreeing()(body)

    with loopback_server(broken_for_one) as server:
        kept, first = record(server, tmp_path, "--mode", mode, "--limit", "1-3", "--method", METHODS, "--judge")
    again = replay(kept, tmp_path)
    assert again.exit_code == 0, again.output
    assert "byte for byte" in again.stdout
    (second,) = (tmp_path / "AGAIN").iterdir()
    assert rows(first) == rows(second)
    assert any(row["error"] for row in rows(first))
    for name in ("summary.json", "predictions.json"):
        assert (second / name).read_bytes() == (first / name).read_bytes()
    made, played = (sorted(lines(folder / "calls.jsonl"), key=str) for folder in (first, second))
    assert made == played
    assert not (tmp_path / "other-data" / "corpora").exists(), "a replay builds no corpus"
    text = gzip.decompress(kept.read_bytes()).decode()
    assert "sk-planted-secret" not in text
    assert str(tmp_path) not in text


def test_a_failed_follow_up_search_can_be_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = HybridRetriever.retrieve

    async def once(
        self: HybridRetriever, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()
    ) -> Retrieval:
        if exclude:
            raise CorpusError("Neither index answers.")
        return await whole(self, queries, k=k, exclude=exclude)

    def lacking(body: dict[str, Any]) -> ServerReply:
        reply = json.loads(disagreeing()(body).text)
        wanted = {"deficit": "insufficient_knowledge", "suggested_queries": ["birthplace of an engineer"]}
        return ServerReply(text=json.dumps({**reply, **wanted}))

    with loopback_server(lacking) as server:
        with monkeypatch.context() as failing:
            failing.setattr(HybridRetriever, "retrieve", once)
            _, first = record(server, tmp_path, "--mode", "open_domain", "--n", "2", "--method", "metarag")
        assert {row["stop_reason"] for row in lines(first / "samples.jsonl")} == {"search_failed"}
        succeeded(["--resume", str(first), "--retry-failed"], environment(server.base_url, tmp_path / "data"))
    newest = {row["id"]: row["stop_reason"] for row in lines(first / "samples.jsonl")}
    assert "search_failed" not in newest.values()


def test_a_mismatched_record_is_rejected_in_one_sentence(tmp_path: Path) -> None:
    with loopback_server(disagreeing()) as server:
        kept, _ = record(server, tmp_path, "--n", "2")
    whole = gzip.decompress(kept.read_bytes()).split(b"\n")

    def refused(lines: list[bytes], said: str, exit_code: int = 2) -> None:
        other = tmp_path / "other.jsonl"
        other.write_bytes(b"\n".join(lines))
        done = replay(other, tmp_path, "--display", "none")
        assert done.exit_code == exit_code, done.output
        assert said in done.stderr

    for damaged in (whole[:-2], whole[1:], [b"{"]):
        refused(damaged, "not a complete record")
    refused([whole[0].replace(b'"format": 2', b'"format": 99'), *whole[1:]], "format 99")
    lost = [line for line in whole if not (line.startswith(b'{"call"') and b'"stage": "second_answer"' in line)]
    refused(lost, "calls of 'metarag' for")
    refused([line for line in whole if not line.startswith(b'{"row"')], "contains no answer of 'metarag' to")
    refused([line.replace(b'"fired": true', b'"fired": 7') for line in whole], "has a damaged row, of 'metarag' for")
    refused(
        [line.replace(b'"prediction": ', b'"predicted": ') for line in whole], "has a damaged row, of 'metarag' for"
    )
    refused([whole[0].replace(b'"arms"', b'"legs"'), *whole[1:]], "lacks arms; record the run again")
    refused([whole[0].replace(b'"quotes"', b'"cites"'), *whole[1:]], "has a damaged line")
    changed = [*whole[:-2], b'{"summary": {"sha256": "0"}}']
    refused(changed, "differs from the recorded one", exit_code=1)
    refused([b'[{"id": "a", "prediction": "b"}]'], "of a run (a line is not an object with one key); record the run")
    missing = replay(tmp_path / "nowhere.jsonl", tmp_path)
    assert missing.exit_code == 2
    assert "does not exist; check the path" in missing.stderr


def test_a_record_cannot_run_files_or_choose_folders_or_urls(tmp_path: Path) -> None:
    with loopback_server(disagreeing()) as server:
        kept, _ = record(server, tmp_path, "--n", "1")
    head, *rest = gzip.decompress(kept.read_bytes()).split(b"\n")
    own = tmp_path / "own"
    own.mkdir()
    (own / "x.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    other = tmp_path / "other.jsonl"

    def altered(**values: Any) -> Any:
        run = json.loads(head)["run"]
        for part, changes in values.items():
            run[part] = {**run[part], **changes}
        other.write_bytes(b"\n".join([json.dumps({"run": run}).encode(), *rest]))
        return replay(other, tmp_path, "--display", "none")

    of_their_own = ("deficits_dir", "methods_dir", "datasets_dir", "operators_dir", "routes_dir", "prompts_dir")
    away = {"marag_data_dir": str(tmp_path / "away"), "qdrant_url": "http://127.0.0.1:9"}
    assert altered(settings={**dict.fromkeys(of_their_own, str(own)), **away}).exit_code == 0
    assert altered(experiment={"sweeps": [f"DEFICITS_DIR={own}"]}).exit_code == 0
    assert not (tmp_path / "away").exists()
    outside = altered(experiment={"dataset": "x/../../../outside"})
    assert outside.exit_code == 2
    assert "is not a valid folder name" in outside.stderr
    assert not (tmp_path / "ran").exists()


def stopped(env: dict[str, str], kept: Path, limit: str) -> tuple[Path, str]:
    """Record a run of four questions that its cost limit stops; returns its folder and what was said."""
    results = kept.with_name("results")
    words = ["--n", "4", "--cost-limit", limit, "--record", str(kept), "--output-dir", str(results)]
    done = in_process(words, env)
    assert done.exit_code == 1, done.output
    return next(results.iterdir()), done.stderr


def test_a_run_that_went_on_without_its_record_has_none(tmp_path: Path) -> None:
    kept = tmp_path / "run.jsonl"
    with loopback_server(disagreeing()) as server:
        env = environment(server.base_url, tmp_path / "data")
        folder, _ = stopped(env, kept, "0.001")
        succeeded(["--resume", str(folder), "--cost-limit", "1"], env)
        done = in_process(["--resume", str(folder), "--record", str(kept)], env)
    assert done.exit_code == 2
    assert "were not recorded" in done.stderr


def test_a_record_that_was_cut_while_it_began_is_begun_again(tmp_path: Path) -> None:
    kept = tmp_path / "run.jsonl"
    with loopback_server(disagreeing()) as server:
        env = environment(server.base_url, tmp_path / "data")
        folder, _ = stopped(env, kept, "0.0000001")
        begun = folder / ".record"
        begun.write_bytes(begun.read_bytes().partition(b"\n")[0] + b'\n{"ques')
        succeeded(["--resume", str(folder), "--record", str(kept), "--cost-limit", "1"], env)
    assert replay(kept, tmp_path).exit_code == 0


def test_a_run_that_stops_early_goes_on_with_its_record(tmp_path: Path) -> None:
    kept = tmp_path / "run.jsonl"
    with loopback_server(disagreeing()) as server:
        env = environment(server.base_url, tmp_path / "data")
        folder, said = stopped(env, kept, "0.001")
        assert not [path for path in tmp_path.iterdir() if "run.jsonl" in path.name]
        assert f"--resume {folder} --record {kept}" in said
        succeeded(["--resume", str(folder), "--record", str(kept), "--cost-limit", "1"], env)
        again = replay(kept, tmp_path)
        assert again.exit_code == 0, again.output
        done = in_process(["--resume", str(folder), "--record", str(tmp_path / "other.jsonl")], env)
        assert done.exit_code == 2
        assert "were not recorded" in done.stderr
        asked = len(server.bodies)
    (tmp_path / "file").write_text("")
    done = in_process(["--n", "1", "--record", str(tmp_path / "file" / "run.jsonl")], env)
    assert done.exit_code == 2
    assert not server.bodies[asked:], "nothing is asked that cannot be recorded"

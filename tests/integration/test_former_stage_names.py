"""Runs and records of earlier versions, which call the stage `second_answer` and its prompt `reference`."""

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.merge import app as merge
from meta_agent_rag.testing.server import disagreeing, loopback_server
from tests.integration.test_recording import record, replay
from tests.integration.test_runner import environment, in_process, lines, only_run

pytestmark = pytest.mark.slow

WORDS = ("--n", "2", "--method", "metarag_paper")
OLD, NEW = "reference", "second_answer"


def as_before(text: str) -> str:
    """A file of a run as earlier versions wrote it: with the old names of stage, prompt and settings."""
    text = text.replace(f'"stage": "{NEW}"', f'"stage": "{OLD}"')
    return re.sub(rf'"{NEW}"(?=: ("[0-9a-f]{{12}}"|\d+\b))', f'"{OLD}"', text)


def older(kept: Path) -> Path:
    """The record with the old names."""
    path = kept.with_name(f"older-{kept.name.removesuffix('.gz')}")
    path.write_text(as_before(gzip.decompress(kept.read_bytes()).decode()))
    assert f'"stage": "{OLD}"' in path.read_text()
    return path


@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_a_record_with_the_old_names_is_replayed(tmp_path: Path, strict: Sequence[str]) -> None:
    with loopback_server(disagreeing()) as server:
        kept, first = record(server, tmp_path, *WORDS, "--set", f"STAGE_TOKENS={NEW}=321")
    again = replay(older(kept), tmp_path, *strict)
    assert again.exit_code == 0, again.output
    assert "byte for byte" in again.stdout
    assert "other prompts" not in again.stdout
    (second,) = (tmp_path / "AGAIN").iterdir()
    assert (second / "summary.json").read_bytes() == (first / "summary.json").read_bytes()


def test_records_with_the_old_names_are_merged(tmp_path: Path) -> None:
    shards = [tmp_path / f"{number}.jsonl.gz" for number in (1, 2)]
    with loopback_server(disagreeing()) as server:
        env = environment(server.base_url, tmp_path / "data")
        for number, shard in enumerate(shards, 1):
            done = in_process([*WORDS, "--shard", f"{number}/2", "--record", str(shard)], env)
            assert done.exit_code == 0, done.output
    merged = tmp_path / "merged.jsonl"
    words = ["--record", str(merged), "--output-dir", str(tmp_path / "MERGED"), "--no-plots"]
    done = CliRunner().invoke(merge, [*(str(older(shard)) for shard in shards), *words])
    assert done.exit_code == 0, done.output
    for strict in ((), ("--strict",)):
        again = replay(merged, tmp_path, *strict)
        assert again.exit_code == 0, again.output


def test_a_run_with_the_old_names_is_resumed_without_paying_twice(tmp_path: Path) -> None:
    with loopback_server(disagreeing()) as server:
        env = environment(server.base_url, tmp_path / "data")
        words = [*WORDS, "--output-dir", str(tmp_path / "RESULTS"), "--set", f"STAGE_TOKENS={NEW}=321"]
        done = in_process(words, env)
        assert done.exit_code == 0, done.output
        folder, asked = only_run(tmp_path), len(server.bodies)
        for name in ("config.json", "calls.jsonl", "samples.jsonl"):
            (folder / name).write_text(as_before((folder / name).read_text()))
        assert set(json.loads((folder / "config.json").read_text())["settings"]["stage_tokens"]) == {OLD}
        first, *_ = (folder / "samples.jsonl").read_text().splitlines()
        (folder / "samples.jsonl").write_text(first + "\n")
        done = in_process(["--resume", str(folder), "--set", f"STAGE_TOKENS={OLD}=321"], env)
        assert done.exit_code == 0, done.output
        assert len(server.bodies) == asked
    assert len(lines(folder / "samples.jsonl")) == 2

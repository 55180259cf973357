"""Shards run on several machines are checked and merged into one run, as if there had been no shards."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.merge import app
from meta_agent_rag.testing.server import LoopbackServer, disagreeing, loopback_server
from tests.integration.test_runner import environment, in_process, lines, only_run, succeeded, summary_of

pytestmark = pytest.mark.slow

COUNT = 3
WORDS = ("--n", "7", "--method", "metarag,standard_rag", "--concurrency", "2")


def merge(shards: Sequence[Path], *words: str) -> Result:
    return CliRunner().invoke(app, [*map(str, shards), "--output-dir", "MERGED", "--no-plots", *words])


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with loopback_server(disagreeing()) as running:
        yield running


@pytest.fixture(scope="module")
def finished(server: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The folders of all shards, run one after another."""
    folder = tmp_path_factory.mktemp("shards")
    found: list[Path] = []
    for number in range(1, COUNT + 1):
        words = [*WORDS, "--shard", f"{number}/{COUNT}", "--output-dir", str(folder / str(number))]
        succeeded(words, environment(server.base_url, folder / f"data-{number}"))
        found += (folder / str(number)).iterdir()
    return tuple(found)


def test_the_merged_folder_equals_that_of_one_run(
    server: LoopbackServer, finished: tuple[Path, ...], tmp_path: Path
) -> None:
    assert in_process([*WORDS], environment(server.base_url, tmp_path / "data")).exit_code == 0
    whole = only_run(tmp_path)
    done = merge(finished, "--json")
    assert done.exit_code == 0, done.output
    (merged,) = (tmp_path / "MERGED").iterdir()
    assert json.loads(done.stdout)["run"] == str(Path("MERGED") / merged.name)
    assert summary_of(merged) == summary_of(whole)
    config = json.loads((merged / "config.json").read_text())
    assert config["experiment"]["shard"] is None
    assert config["merged"] == [shard.name for shard in finished]
    for name in ("samples.jsonl", "calls.jsonl"):
        assert len(lines(merged / name)) == sum(len(lines(shard / name)) for shard in finished)
    assert "7 questions" in (merged / "report.md").read_text()


def altered(shard: Path, folder: Path, **parts: Any) -> Path:
    """A copy of a shard's folder, with parts of its configuration changed."""
    copy = folder / "copies" / shard.name
    shutil.copytree(shard, copy)
    config = json.loads((copy / "config.json").read_text())
    for part, value in parts.items():
        config[part] = {**config[part], **value} if isinstance(value, dict) else value
    (copy / "config.json").write_text(json.dumps(config))
    return copy


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"commit": "other"}, "they differ in commit"),
        ({"experiment": {"seed": 7}}, "they differ in seed"),
        ({"dataset": {"sha256": "0"}}, "they differ in data"),
        ({"settings": {"rrf_k": 9}}, "they differ in RRF_K"),
        ({"sample": {"questions": 15}}, "they differ in questions"),
        ({"experiment": {"shard": None}}, "was run without --shard"),
        ({"experiment": {"shard": "2/5"}}, "were divided into 3 and 5 shards"),
        ({"experiment": {"shard": "1/3"}}, "Two of the runs are shard 1/3"),
    ],
)
def test_shards_of_different_experiments_are_rejected(
    finished: tuple[Path, ...], tmp_path: Path, parts: dict[str, Any], said: str
) -> None:
    first, second, third = finished
    done = merge([first, altered(second, tmp_path, **parts), third])
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "MERGED").exists()


def test_missing_shards_and_answers_are_reported(finished: tuple[Path, ...], tmp_path: Path) -> None:
    first, second, third = finished
    assert "Missing: shard 3/3; run it with --shard 3/3" in merge([first, second]).stderr
    short = altered(second, tmp_path)
    *kept, _ = (short / "samples.jsonl").read_text().splitlines(keepends=True)
    (short / "samples.jsonl").write_text("".join(kept))
    done = merge([first, short, third])
    assert "lacks 1 of 2 answers of" in done.stderr
    assert f"continue it with --resume {short}" in done.stderr
    other = altered(third, tmp_path)
    samples = (other / "samples.jsonl").read_text()
    twice = lines(second / "samples.jsonl")[0]["id"]
    (other / "samples.jsonl").write_text(samples.replace(lines(other / "samples.jsonl")[0]["id"], twice))
    assert f"both answer {twice!r}" in merge([first, second, other]).stderr

"""Shards run on several machines are checked and merged into one run, as if there had been no shards."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.merge import app
from meta_agent_rag.testing.server import LoopbackServer, disagreeing, loopback_server
from tests.forked import RUNNER, forked
from tests.integration.test_kills import run_and_kill
from tests.integration.test_runner import command, environment, in_process, lines, only_run

pytestmark = pytest.mark.slow

COUNT = 4
KILLS = 1
WORDS = ("--n", "14", "--method", "metarag,standard_rag", "--concurrency", "2")


def shard_words(number: int, *words: str) -> list[str]:
    return [*WORDS, "--shard", f"{number}/{COUNT}", *words]


def merge(shards: Sequence[Path], *words: str) -> Result:
    return CliRunner().invoke(app, [*map(str, shards), "--output-dir", "MERGED", "--no-plots", *words])


def timeless(folder: Path) -> dict[str, Any]:
    """A summary without durations and without response cache counts."""
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    for figures in found["methods"].values():
        del figures["latency_s"]
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with loopback_server(disagreeing(0.02)) as running:
        yield running


@pytest.fixture(scope="module")
def finished(server: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The folders of all shards, run one after another, each with its record next to it."""
    folder = tmp_path_factory.mktemp("shards")
    found: list[Path] = []
    for number in range(1, COUNT + 1):
        env = environment(server.base_url, folder / f"data-{number}")
        record = ("--record", str(folder / f"{number}.jsonl.gz"))
        done = in_process(shard_words(number, *record, "--output-dir", str(folder / str(number))), env)
        assert done.exit_code == 0, done.output
        found += (folder / str(number)).iterdir()
    return tuple(found)


@pytest.fixture(scope="module")
def whole(server: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same run without shards, with its record next to it."""
    folder = tmp_path_factory.mktemp("whole")
    env = environment(server.base_url, folder / "data")
    words = [*WORDS, "--record", str(folder / "whole.jsonl"), "--output-dir", str(folder / "RESULTS")]
    done = in_process(words, env)
    assert done.exit_code == 0, done.output
    return only_run(folder)


def test_shards_in_killed_processes_still_merge_into_one_run(tmp_path: Path, whole: Path) -> None:
    chance = random.Random(4812)
    kills = 0
    with loopback_server(disagreeing(0.03)) as own:
        env = environment(own.base_url, tmp_path / "data")
        places = [tmp_path / str(number) for number in range(1, COUNT + 1)]
        words = {place: command(*shard_words(number)) for number, place in enumerate(places, 1)}
        for place in places:
            place.mkdir()
        for _ in range(KILLS):
            for place in places:
                kills += run_and_kill(words[place], env, place, own, chance)
                words[place] = command("--resume", only_run(place).name)
        children = [forked(RUNNER, words[place], env, place) for place in places]  # all at once
        assert [child.ended() for child in children] == [0] * COUNT, [child.err.read_text() for child in children]
        asked = Counter(json.dumps(body, sort_keys=True) for body in own.bodies)
    shards = [only_run(place) for place in places]
    assert kills >= KILLS * COUNT * 3 // 4, "nearly every kill must interrupt a running process"
    done = merge(shards)
    assert done.exit_code == 0, done.output
    (merged,) = (tmp_path / "MERGED").iterdir()
    assert timeless(merged) == timeless(whole)
    calls = lines(merged / "calls.jsonl")
    received = Counter(row["request"] for row in calls if not row["cached"] and not row["error"])
    assert set(received.values()) == {1}, "a reply that was received is never paid for again"
    assert len(calls) == sum(len(lines(shard / "calls.jsonl")) for shard in shards)
    served = {row["request"] for row in calls if not row["error"]}  # a kill may fall between the cache and the ledger
    assert len(asked) == len(served)


def test_the_merged_folder_is_complete(finished: tuple[Path, ...], whole: Path, tmp_path: Path) -> None:
    done = merge(finished, "--json")
    assert done.exit_code == 0, done.output
    (merged,) = (tmp_path / "MERGED").iterdir()
    assert json.loads(done.stdout)["run"] == str(Path("MERGED") / merged.name)
    assert timeless(merged) == timeless(whole)
    config = json.loads((merged / "config.json").read_text())
    assert config["experiment"]["shard"] is None
    assert config["merged"] == [shard.name for shard in finished]
    assert all(shard.name.endswith(f"-shard-{number}-of-4") for number, shard in enumerate(finished, 1))
    for name in ("predictions.json", "predictions-standard_rag-2.json"):
        both = [json.loads((folder / name).read_text()) for folder in (merged, whole) if (folder / name).exists()]
        assert len({json.dumps(one, sort_keys=True) for one in both}) <= 1
    assert sorted(row["id"] for row in lines(merged / "samples.jsonl")) == sorted(
        row["id"] for row in lines(whole / "samples.jsonl")
    )
    assert "14 questions" in (merged / "report.md").read_text()


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
        ({"version": "9"}, "they differ in version"),
        ({"experiment": {"seed": 7}}, "they differ in seed"),
        ({"dataset": {"sha256": "0"}}, "they differ in data"),
        ({"lock": "0"}, "they differ in lock"),
        ({"settings": {"rrf_k": 9}}, "they differ in RRF_K"),
        ({"sample": {"questions": 15}}, "they differ in questions"),
        ({"experiment": {"shard": None}}, "was run without --shard"),
        ({"experiment": {"shard": "2/5"}}, "were divided into 4 and 5 shards"),
        ({"experiment": {"shard": "1/4"}}, "Two of the runs are shard 1/4"),
    ],
)
def test_shards_of_different_experiments_are_rejected(
    finished: tuple[Path, ...], tmp_path: Path, parts: dict[str, Any], said: str
) -> None:
    first, second, *others = finished
    extra = [second] if "Two of" in said else []
    done = merge([first, altered(second, tmp_path, **parts), *extra, *others])
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "MERGED").exists()


def test_missing_shards_and_answers_are_reported(finished: tuple[Path, ...], tmp_path: Path) -> None:
    done = merge(finished[:3])
    assert done.exit_code == 2
    assert "Missing: shard 4/4; run it with --shard 4/4" in done.stderr
    short = altered(finished[1], tmp_path)
    *kept, _ = (short / "samples.jsonl").read_text().splitlines(keepends=True)
    (short / "samples.jsonl").write_text("".join(kept))
    done = merge([finished[0], short, *finished[2:]])
    assert done.exit_code == 2
    assert "lacks 1 of 4 answers of" in done.stderr
    assert f"continue it with --resume {short}" in done.stderr
    other = altered(finished[2], tmp_path)
    samples = (other / "samples.jsonl").read_text()
    twice = lines(finished[1] / "samples.jsonl")[0]["id"]
    (other / "samples.jsonl").write_text(samples.replace(lines(other / "samples.jsonl")[0]["id"], twice))
    done = merge([finished[0], finished[1], other, finished[3]])
    assert done.exit_code == 2
    assert f"both answer {twice!r}" in done.stderr

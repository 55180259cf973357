"""`python -m benchmarks.speed`: retrieval over a judged corpus, and the overhead of orchestration."""

import gzip
import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.speed.__main__ import app
from benchmarks.speed.orchestration import Workload, measured
from benchmarks.speed.retrieval import ranking_scores
from meta_agent_rag.testing.server import disagreeing, loopback_server

MILL = {"id": "mill", "title": "Corran Mill", "text": "Corran Mill was designed by Edda Voss in 1871."}


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("queries.jsonl", '{"text": "no id"}', "in BEIR layout"),
        ("corpus.jsonl.gz", "no gzip", "in BEIR layout"),
        ("qrels.tsv", "heading\n", "no query with a judgement"),
    ],
)
def test_a_broken_folder_is_reported_in_one_sentence(tmp_path: Path, file: str, content: str, words: str) -> None:
    folder = tmp_path / "judged"
    folder.mkdir()
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(json.dumps(MILL).encode()))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "Who designed Corran Mill?"}))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tmill\t1\n")
    (folder / file).write_text(content)
    command = ["retrieval", "--corpus-dir", str(folder), "--encoder", "hash-64", "--repeats", "1"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_ranking_measures_of_a_worked_example() -> None:
    scores = ranking_scores([["x", "a", "y", "z", "w", "b"], ["c"]], [{"a", "b"}, {"c"}])
    assert scores["recall@2"] == 75.0
    assert scores["recall@5"] == 75.0
    assert scores["recall@10"] == 100.0
    assert scores["all@5"] == 50.0
    assert scores["all@10"] == 100.0
    assert scores["mrr"] == 75.0
    gain = 1 / math.log2(3) + 1 / math.log2(7)
    assert scores["ndcg@10"] == pytest.approx(50 * (gain / (1 + 1 / math.log2(3)) + 1), abs=0.01)


@pytest.mark.slow
async def test_both_sides_make_the_same_calls(tmp_path: Path) -> None:
    with loopback_server(disagreeing(0.05)) as server:
        result = await measured(Workload(address=server.base_url, n=4, concurrency=4, seconds=0.05), tmp_path, 1)
        calls = len(server.bodies)
    assert result["calls_per_question"] == 4
    assert calls == 2 * (2 + 4) * 4, "two warm-up and four measured questions on each side"
    assert result["ours_s"] > result["ideal_s"] > 0
    assert result["bare_cpu_ms_per_call"] > 0

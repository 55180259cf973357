"""`python -m benchmarks.speed retrieval`, over a small corpus with queries and judgements."""

import gzip
import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from benchmarks.speed.__main__ import app
from benchmarks.speed.retrieval import ranking_scores

CORPUS = [
    {"id": "mill", "title": "Corran Mill", "text": "Corran Mill was designed by Edda Voss in 1871."},
    {"id": "voss", "title": "Edda Voss", "text": "She came into the world beside the Tarn Water."},
    *(
        {"id": f"n{n}", "title": f"Noise {n}", "text": f"A mill, a designer, a place of birth, number {n}."}
        for n in range(30)
    ),
]
QUERIES = [{"_id": "q1", "text": "Where was the designer of Corran Mill born?"}, {"_id": "q2", "text": "Unjudged?"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\tmill\t1\nq1\tvoss\t1\nq1\tn3\t0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set in BEIR layout."""
    home = tmp_path / "judged"
    home.mkdir()
    (home / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, CORPUS)).encode()))
    (home / "queries.jsonl").write_text("\n".join(map(json.dumps, QUERIES)))
    (home / "qrels.tsv").write_text(QRELS)
    return home


def measure(folder: Path, *words: str) -> Result:
    command = ["retrieval", "--corpus-dir", str(folder), "--encoder", "hash-64", "--repeats", "1", *words]
    return CliRunner().invoke(app, command)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("queries.jsonl", '{"text": "no id"}', "in BEIR layout"),
        ("corpus.jsonl.gz", "no gzip", "in BEIR layout"),
        ("qrels.tsv", "heading\n", "no query with a judgement"),
    ],
)
def test_a_broken_folder_is_reported_in_one_sentence(folder: Path, file: str, content: str, words: str) -> None:
    (folder / file).write_text(content)
    result = measure(folder)
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

"""The encoder benchmark runs without a model; its figures are not checked here."""

import gzip
import json
from pathlib import Path

from typer.testing import CliRunner, Result

from benchmarks.speed.__main__ import app


def measured(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["encoding", "--encoder", "hash-64", *arguments])


def test_it_measures_both_runtimes_on_a_corpus(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt", encoding="utf-8") as lines:
        for number in range(70):
            lines.write(json.dumps({"id": str(number), "title": f"T{number}", "text": "words " * number}) + "\n")
    done = measured("--corpus-dir", str(tmp_path), "--n", "66", "--queries", "4", "--starts", "1", "--json")
    assert done.exit_code == 0, done.stderr
    figures = json.loads(done.stdout)
    assert (figures["encoder"], figures["passages"], figures["queries"], figures["starts"]) == ("hash-64", 66, 4, 1)
    for runtime in ("torch", "onnx"):
        assert figures[runtime]["passages_per_s"] > 0
        assert figures[runtime]["query_ms"] > 0
        assert figures[runtime]["ready_s"] >= figures[runtime]["ready_cpu_s"] * 0.5
        assert figures[runtime]["imported"] == []
    assert figures["largest_distance"] < 1e-6
    assert {"query_ratio", "passages_ratio", "first_use_s"} <= set(figures)


def test_it_prints_lines_of_text_for_the_sample() -> None:
    done = measured("--n", "8", "--queries", "2", "--starts", "1")
    assert done.exit_code == 0, done.stderr
    assert "imports no torch" in done.stdout


def test_a_folder_without_a_corpus_is_reported(tmp_path: Path) -> None:
    done = measured("--corpus-dir", str(tmp_path))
    assert done.exit_code == 2
    assert "contains neither corpus.jsonl" in done.stderr

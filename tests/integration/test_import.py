"""Predictions of other systems in our table: a made-up file of each schema next to one of our runs."""

import csv
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.compare import app as compare
from benchmarks.runner import app as runner
from tests.integration.test_runner import QUESTIONS, only_run
from tests.past_runs import row, write_run

APP = import_module("benchmarks.import").app
ROWS = json.loads(QUESTIONS.read_text())[:20]
RIGHT = 8


def prediction(number: int) -> str:
    """Every system's answer: right for the first eight questions, half right for the next, otherwise wrong."""
    gold = str(ROWS[number]["answer"])
    return gold if number < RIGHT else f"{gold} or not" if number == RIGHT else "nobody knows"


def file(folder: Path, schema: str) -> Path:
    """A made-up file of a schema."""
    spent: dict[str, Any] = {"n_llm_calls": 11, "prompt_tokens": 1000, "completion_tokens": 100, "latency_s": 7.5}
    contents: dict[str, Any] = {
        "flashrag": [
            {"id": f"test_{n}", "question": row["question"], "golden_answers": [], "output": {"pred": prediction(n)}}
            for n, row in enumerate(ROWS)
        ],
        "mothrag": {
            "summary": {"n": len(ROWS), "em": 0.0},
            "per_question": [
                {"qid": str(n), "question": f" {row['question']} ", "gold": row["answer"], "pred": prediction(n)}
                | spent
                for n, row in enumerate(ROWS)
            ],
        },
    }
    path = folder / f"{schema}.json"
    path.write_text(json.dumps(contents[schema]))
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(APP, [*map(str, words), "--dataset", "sample", "--no-plots"])


@pytest.mark.parametrize("schema", ["flashrag", "mothrag"])
def test_every_schema_gets_the_same_scores_and_intervals(tmp_path: Path, schema: str) -> None:
    done = run(file(tmp_path, schema))
    assert done.exit_code == 0, done.output
    folder = only_run(tmp_path)
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["n"], summary["mode"]) == (20, "imported")
    figures = summary["methods"][schema]
    assert figures["em"] == 100 * RIGHT / 20
    assert RIGHT * 5 < figures["f1"] < (RIGHT + 1) * 5
    low, high = figures["em_ci95"]
    assert 15 < low < figures["em"] < high < 65
    (row,) = csv.DictReader((folder / "tables" / "quality.csv").read_text().splitlines())
    if schema == "mothrag":
        assert (row["calls"], figures["tokens"]["prompt"], figures["latency_s"]["p50"]) == ("220", 20_000, 7.5)
    else:
        assert row["calls"] == "-"
    assert f"{schema}: 20 predictions, none for 36 questions; EM 40.0 [" in done.stdout


def test_an_imported_run_is_compared_with_ours(tmp_path: Path) -> None:
    asked = ROWS[4:12]
    rows = [row((one["_id"], one["answer"], "nobody"), question=one["question"], aliases=[]) for one in asked]
    ours = write_run(tmp_path / "ours", rows)
    assert run(file(tmp_path, "mothrag"), "--name", "MOTHRAG").exit_code == 0
    compared = CliRunner().invoke(compare, [str(ours), str(only_run(tmp_path)), "--json"])
    assert compared.exit_code == 0, compared.output
    found = json.loads(compared.stdout)
    assert (found["n"], found["b"]["name"], found["only_b_right"]) == (8, "MOTHRAG", 4)


@pytest.mark.parametrize("again", [["--rescore", "RUN", "--judge"], ["--resume", "RUN"]])
def test_an_imported_run_is_not_continued_or_judged(tmp_path: Path, again: list[str]) -> None:
    assert run(file(tmp_path, "mothrag")).exit_code == 0
    result = CliRunner().invoke(runner, [str(only_run(tmp_path)) if word == "RUN" else word for word in again])
    assert (result.exit_code, "import the file again" in result.stderr) == (2, True)

"""Predictions of other systems in our table: a made-up file of each schema next to one of our runs."""

import csv
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.compare import app as compare
from meta_agent_rag.testing.server import disagreeing, loopback_server
from tests.integration.test_runner import QUESTIONS, environment, in_process, lines, only_run
from tests.past_runs import row, write_run

APP = import_module("benchmarks.import").app
ROWS = json.loads(QUESTIONS.read_text())[:20]
RIGHT = 8


def prediction(number: int) -> str:
    """Every system's answer: right for the first eight questions, half right for the next, otherwise wrong."""
    gold = str(ROWS[number]["answer"])
    return gold if number < RIGHT else f"{gold} or not" if number == RIGHT else "nobody knows"


def files(folder: Path) -> dict[str, Path]:
    """A made-up file of each schema over the same questions."""
    contents: dict[str, Any] = {
        "flashrag": [
            {"id": f"test_{n}", "question": row["question"], "golden_answers": [], "output": {"pred": prediction(n)}}
            for n, row in enumerate(ROWS)
        ],
        "mothrag": {
            "summary": {"n": len(ROWS), "em": 0.0},
            "per_question": [
                {
                    "qid": str(n),
                    "question": f" {row['question']} ",
                    "gold": row["answer"],
                    "pred": prediction(n),
                    "n_llm_calls": 11,
                    "prompt_tokens": 1000,
                    "completion_tokens": 100,
                    "latency_s": 7.5,
                }
                for n, row in enumerate(ROWS)
            ],
        },
        "hipporag": [
            {"question": row["question"], "answer": prediction(n), "gold_answers": [], "docs": [], "doc_scores": None}
            for n, row in enumerate(ROWS)
        ],
        "official": {"answer": {row["_id"]: prediction(n) for n, row in enumerate(ROWS)}, "sp": {}},
    }
    paths = {}
    for name, content in contents.items():
        paths[name] = folder / f"{name}.json"
        paths[name].write_text(json.dumps(content))
    paths["plain"] = folder / "plain.jsonl"
    plain = [json.dumps({"id": row["_id"], "prediction": prediction(n)}) for n, row in enumerate(ROWS)]
    paths["plain"].write_text("\n".join(plain))
    return paths


def run(*words: object) -> Result:
    return CliRunner().invoke(APP, [*map(str, words), "--dataset", "sample", "--no-plots"])


def test_every_schema_gets_the_same_scores_intervals_and_tests(tmp_path: Path) -> None:
    done = run(*files(tmp_path).values())
    assert done.exit_code == 0, done.output
    folder = only_run(tmp_path)
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["n"], summary["mode"]) == (20, "imported")
    assert set(summary["methods"]) == {"flashrag", "mothrag", "hipporag", "official", "plain"}
    for name, figures in summary["methods"].items():
        assert figures["em"] == 100 * RIGHT / 20, name
        assert RIGHT * 5 < figures["f1"] < (RIGHT + 1) * 5
        low, high = figures["em_ci95"]
        assert 15 < low < figures["em"] < high < 65
    mothrag = summary["methods"]["mothrag"]
    assert (mothrag["llm_calls"], mothrag["tokens"]["prompt"], mothrag["latency_s"]["p50"]) == (220, 20_000, 7.5)
    head, *rows = csv.reader((folder / "tables" / "quality.csv").read_text().splitlines())
    calls = {row[0]: row[head.index("calls")] for row in rows}
    assert calls == {"mothrag": "220", **dict.fromkeys(("flashrag", "hipporag", "official", "plain"), "-")}
    assert "model: each system's own" in (folder / "report.md").read_text()
    assert "flashrag: 20 predictions" in done.stdout
    assert "EM 40.0 [" in done.stdout


def test_our_run_is_shown_alongside_and_tested_against_imports(tmp_path: Path) -> None:
    with loopback_server(disagreeing()) as server:
        env = environment(server.base_url, tmp_path / "data")
        assert in_process(["--limit", "5-12", "--method", "metarag,standard_rag"], env).exit_code == 0
    ours = only_run(tmp_path)
    done = run(files(tmp_path)["mothrag"], "--name", "MOTHRAG", "--beside", ours.name)
    assert done.exit_code == 0, done.output
    (folder,) = (path for path in (tmp_path / "RESULTS").iterdir() if path != ours)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["n"] == 8, "the questions that all rows share"
    assert list(summary["methods"]) == ["metarag", "standard_rag", "MOTHRAG"]
    assert summary["methods"]["MOTHRAG"]["em"] == 50.0
    against = summary["comparison"]["against"]["MOTHRAG"]
    assert against["f1"]["difference"] < 0
    assert 0 <= against["em"]["p"] <= 1
    before = json.loads((ours / "summary.json").read_text())["methods"]["metarag"]
    assert {name: summary["methods"]["metarag"][name] for name in ("em", "f1", "f1_ci95", "llm_calls")} == {
        name: before[name] for name in ("em", "f1", "f1_ci95", "llm_calls")
    }
    compared = CliRunner().invoke(compare, [str(folder), "--method-a", "metarag", "--method-b", "MOTHRAG", "--json"])
    assert compared.exit_code == 0, compared.output
    assert json.loads(compared.stdout)["only_b_right"] == 4


def test_missing_answers_count_as_failed_and_unknown_questions_are_ignored(tmp_path: Path) -> None:
    rows = [{"question": row["question"], "answer": None, "gold_answers": []} for row in ROWS[:2]]
    rows += [{"question": "Quite another question?", "answer": "x", "gold_answers": []}]
    rows += [{"question": ROWS[2]["question"], "answer": ROWS[2]["answer"], "gold_answers": []}]
    (tmp_path / "theirs.json").write_text(json.dumps(rows))
    done = run(tmp_path / "theirs.json")
    assert done.exit_code == 0, done.output
    assert "theirs: 3 predictions, 1 for other questions left out" in done.stdout
    figures = json.loads((only_run(tmp_path) / "summary.json").read_text())["methods"]["theirs"]
    assert (figures["n"], figures["answered"], figures["errors"], figures["em"]) == (3, 1, 2, 100.0)
    assert all(
        row["error"] is None or "contains no answer" in row["error"]
        for row in lines(only_run(tmp_path) / "samples.jsonl")
    )


@pytest.mark.parametrize(
    ("words", "said_"),
    [
        (["plain", "--name", "a", "--name", "b"], "1 files have 2 names"),
        (["plain", "official", "--name", "a", "--name", "a"], "would have the same name"),
        (["plain", "--beside", "nothing"], "'nothing' is not a run folder"),
    ],
)
def test_invalid_imports_are_reported_in_one_sentence(tmp_path: Path, words: list[str], said_: str) -> None:
    known = files(tmp_path)
    done = run(*(known.get(word, word) for word in words))
    assert done.exit_code == 2
    assert said_ in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "RESULTS").exists()


@pytest.mark.parametrize(
    ("dataset", "question", "said"),
    [("hotpotqa", None, "is on 'hotpotqa', not 'sample'"), ("sample", "Who else?", "names different questions")],
)
def test_a_run_on_other_questions_is_rejected(tmp_path: Path, dataset: str, question: str | None, said: str) -> None:
    asked = row((ROWS[0]["_id"], "Oslo", "Oslo"), question=question or ROWS[0]["question"])
    folder = write_run(tmp_path / "ours", [asked], dataset=dataset)
    done = run(files(tmp_path)["plain"], "--beside", folder)
    assert done.exit_code == 2
    assert said in done.stderr

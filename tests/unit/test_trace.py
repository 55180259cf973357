"""`marag trace`: a question's path through a run, from the run's files alone."""

import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from meta_agent_rag.cli.main import app
from meta_agent_rag.shipped import shipped

CALL = {
    "stage": "look_up", "model": "tiny", "method": "metarag", "prompt_tokens": 900, "cache_hit_tokens": 850,
    "completion_tokens": 7, "cached": False, "latency_s": 1.25, "cost_usd": "0.000031", "error": None,
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A bundled run as a folder."""
    with zipfile.ZipFile(shipped("2wikimultihopqa.zip")) as packed:
        packed.extractall(tmp_path)
    return next(tmp_path.rglob("samples.jsonl")).parent


def traced(*words: str) -> Result:
    return CliRunner().invoke(app, ["trace", *words], env={"COLUMNS": "160"})


def test_questions_are_listed_and_one_is_shown_with_its_rounds_and_calls(run: Path) -> None:
    rows = json.loads(traced(str(run), "--json").stdout)
    listed = traced(str(run)).stdout
    assert all(row["id"] in listed for row in rows)
    first = rows[0]["id"]
    calls = [{**CALL, "question_id": first}, {**CALL, "question_id": first, "method": "standard_rag"}]
    (run / "calls.jsonl").write_text("".join(json.dumps(call) + "\n" for call in calls) + "torn {")
    shown = traced(str(run), first)
    for part in ("Question.", "The first draft", "Result: ", "one pass", "Model calls", "look_up"):
        assert part in shown.stdout, part
    assert shown.stdout.count("0.000031") == 1, "the other method's call is not included"
    assert json.loads(traced(str(run), first[:12], "--json").stdout)["calls"] == [calls[0]]


def test_wrong_input_is_one_sentence(run: Path, tmp_path: Path) -> None:
    for words, said in (
        ([str(run), "nonsense"], "The run has no question 'nonsense'; `marag trace RUN` lists them."),
        ([str(tmp_path / "nowhere")], "nowhere"),
    ):
        refused = traced(*words)
        assert refused.exit_code == 2
        assert said in refused.stderr
        assert len(refused.stderr.splitlines()) == 1

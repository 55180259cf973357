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
    """A bundled run as a folder, with a ledger of two calls for its first question."""
    folder = tmp_path / "RESULTS" / "20261125-2wiki"
    with zipfile.ZipFile(shipped("2wikimultihopqa.zip")) as packed:
        packed.extractall(folder)
    samples = next(folder.rglob("samples.jsonl"))
    first = next(row for line in samples.read_text().splitlines() if (row := json.loads(line))["method"] == "metarag")
    calls = [{**CALL, "question_id": first["id"]}, {**CALL, "question_id": first["id"], "method": "standard_rag"}]
    (samples.parent / "calls.jsonl").write_text("".join(json.dumps(call) + "\n" for call in calls) + "torn {")
    return samples.parent


def traced(*words: str) -> Result:
    return CliRunner().invoke(app, ["trace", *words], env={"COLUMNS": "160"})


@pytest.mark.parametrize(("provider", "price"), [("embedded", "free"), ("compatible", "unknown")])
def test_a_call_without_a_price_is_free_only_on_this_machine(run: Path, provider: str, price: str) -> None:
    first = json.loads(traced(str(run), "--json").stdout)[0]
    call = {**CALL, "question_id": first["id"], "provider": provider, "cost_usd": None}
    (run / "calls.jsonl").write_text(json.dumps(call) + "\n")
    assert price in traced(str(run), first["id"]).stdout.splitlines()[-2]


def test_questions_are_listed(run: Path) -> None:
    listed = traced(str(run))
    assert listed.exit_code == 0, listed.output
    rows = json.loads(traced(str(run), "--json").stdout)
    assert len(rows) == len(listed.stdout.strip().splitlines()) >= 20
    assert all(row["id"] in listed.stdout for row in rows)
    assert "repairs: " in listed.stdout


def test_a_question_is_shown_with_its_rounds_and_calls(run: Path) -> None:
    first = json.loads(traced(str(run), "--json").stdout)[0]
    shown = traced(str(run), first["id"])
    assert shown.exit_code == 0, shown.output
    for part in ("Question.", "Evidence.", "The first draft", "Result: ", "one pass", "Model calls", "look_up"):
        assert part in shown.stdout, part
    assert shown.stdout.count("0.000031") == 1, "the other method's call is not included"
    as_data = json.loads(traced(str(run), first["id"][:12], "--json").stdout)
    assert (as_data["id"], len(as_data["calls"])) == (first["id"], 1)
    other = traced(str(run), first["id"], "--method", "standard_rag")
    assert other.exit_code == 0, other.output
    assert "the loop  " in shown.stdout
    assert "the loop  " not in other.stdout, "another method is traced under its own name"
    assert "first draft  " not in other.stdout


def test_a_run_is_found_by_name_and_in_a_zip_file(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    by_path = traced(str(run)).stdout
    assert traced(str(run.relative_to(tmp_path / "RESULTS"))).stdout == by_path
    assert traced(str(shipped("2wikimultihopqa.zip"))).stdout == by_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "There is no run 'nowhere'; give a folder with samples.jsonl"),
        (("RUN", "zzz"), "The run has no question 'zzz'; `marag trace RUN` lists them."),
        (("RUN", ""), "questions begin with ''; give more of the id."),
        (("RUN", "zzz", "--method", "magic"), "method of this run 'magic'"),
        ((__file__,), "cannot be opened"),
    ],
)
def test_missing_runs_questions_and_methods_are_reported(words: tuple[str, ...], said: str, run: Path) -> None:
    done = traced(*(str(run) if word == "RUN" else word for word in words))
    assert done.exit_code == 2
    assert said in done.output

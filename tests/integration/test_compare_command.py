"""`python -m benchmarks.compare` and `python -m benchmarks.calibrate`, from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from benchmarks import calibrate, compare
from meta_agent_rag.agent.calibration import read_calibration
from tests.dozen import rows_a, rows_b
from tests.first_drafts import telling
from tests.past_runs import write_run

ROOT = Path(__file__).parents[2]
WIDTH = {"COLUMNS": "80", "NO_COLOR": "1"}


def run_compare(*words: object) -> Result:
    return CliRunner().invoke(compare.app, [str(word) for word in words], env=WIDTH)


def run_calibrate(*words: object) -> Result:
    return CliRunner().invoke(calibrate.app, [str(word) for word in words], env=WIDTH)


def test_two_runs_are_compared_at_80_columns(tmp_path: Path) -> None:
    write_run(tmp_path / "RESULTS" / "one", rows_a())
    write_run(tmp_path / "two", rows_b(), mode="open_domain")
    done = run_compare("one", tmp_path / "two", "--count-failures", "--out", tmp_path / "comparison.md")
    assert done.exit_code == 0, done.output
    first = done.stdout.splitlines()[0]
    assert first.startswith("No significant difference between A (run one) and B (run two)")
    assert max(len(line) for line in done.stdout.splitlines() if "comparison.md" not in line) <= 80
    whole = " ".join(done.stdout.split())
    assert "only A 2, only B 4" in whole
    assert "mode: A gold; B open_domain" in whole
    assert "Won by B (5)" in whole
    assert (tmp_path / "comparison.md").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere", "one"], "'nowhere' is not a run folder"),
        (["one"], "name two of its methods (metarag)"),
        (["one", "one"], "A and B are both 'metarag'"),
        (["one", "one", "--method-b", "flare"], "There is no method of the run 'one' called 'flare'"),
    ],
)
def test_misuse_is_reported_in_one_sentence_with_exit_code_2(tmp_path: Path, words: list[str], message: str) -> None:
    write_run(tmp_path / "RESULTS" / "one", rows_a())
    done = run_compare(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_policy_is_fitted_and_evaluated_on_other_questions(tmp_path: Path) -> None:
    write_run(tmp_path / "RESULTS" / "fitted", telling(150, seed=1))
    write_run(tmp_path / "RESULTS" / "fresh", telling(60, seed=2, prefix="p"))
    file = tmp_path / "policies" / "monitor.yaml"
    done = run_calibrate("fitted", "--out", file)
    assert done.exit_code == 0, done.output
    assert "150 first drafts" in done.stdout
    assert "calibrated, 5-fold: AUROC 0." in done.stdout
    calibration = read_calibration(file)
    assert calibration.encoder == "all-MiniLM-L6-v2"
    assert calibration.fitted_on.runs == ("fitted",)
    assert len(calibration.fitted_on.questions) == len(calibration.fitted_on.texts) == 150
    assert calibration.fitted_on.models == {"flash": "f", "pro": "p"}

    measured = run_calibrate("fresh", "--evaluate", file, "--json")
    assert measured.exit_code == 0, measured.output
    (fitted,) = json.loads(measured.stdout)["monitors"]
    assert fitted["auroc"] > 0.75

    hidden = [{**row, "id": f"other-{row['id']}"} for row in telling(150, seed=1)]
    write_run(tmp_path / "RESULTS" / "hidden", hidden, dataset="renamed")
    evaded = run_calibrate("hidden", "--evaluate", file)
    assert evaded.exit_code == 2
    assert "fitted on 150 of these 150 questions of 'renamed'" in evaded.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["one"], "Give --out FILE to fit"),
        (["one", "--out", "x", "--evaluate", "y"], "Give --out FILE to fit"),
        (["one", "--evaluate", "gone.yaml"], "'gone.yaml' cannot be read"),
        (["one", "--out", "x.yaml", "--method", "flare"], "called 'flare'; choose from: metarag"),
        (["few", "--out", "x.yaml"], "a fit needs at least 10"),
        (["one", "one", "--out", "x.yaml"], "share questions ('sample one0' and 59 more)"),
        (["one", "other", "--out", "x.yaml"], "The runs differ in MONITOR_ENCODER"),
        (["one", "--out", "x.yaml", "--method", "metarag oracle monitor"], "used gold answers"),
        (["torn", "--out", "x.yaml"], "a damaged row, of 'metarag' for 'torn0' (field 'rounds"),
        (["other", "--evaluate", "fitted.yaml"], "encoder 'all-MiniLM-L6-v2', but the runs used 'hash-64'"),
    ],
)
def test_an_invalid_calibration_is_rejected(tmp_path: Path, words: list[str], message: str) -> None:
    for name, count, changes in (("one", 60, {}), ("few", 12, {}), ("other", 60, {"set_monitor_encoder": "hash-64"})):
        write_run(tmp_path / "RESULTS" / name, telling(count, prefix=name), **changes)
    torn = telling(3, prefix="torn")
    del torn[0]["rounds"][0]["f1"]
    write_run(tmp_path / "RESULTS" / "torn", torn)
    assert run_calibrate("one", "--out", "fitted.yaml").exit_code == 0
    assert yaml.safe_load((tmp_path / "fitted.yaml").read_text())["version"] == 3
    done = run_calibrate(*words)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert not (tmp_path / "x.yaml").exists()


@pytest.mark.parametrize("module", ["benchmarks.compare", "benchmarks.calibrate"])
def test_help_imports_nothing_heavy(module: str) -> None:
    code = (
        f"import sys, {module} as command\n"
        "from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(command.app, ['--help']).exit_code == 0\n"
        "sys.exit(bool({'scipy', 'sklearn', 'langgraph'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0

"""The report opens with a headline that the data support, draws its plots, and survives a failing one."""

import csv
import io
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.analyses import Analysis, discover_analyses
from benchmarks.report.document import headline, write_report
from benchmarks.report.published import protocol
from benchmarks.rows.summary import summarise
from benchmarks.run.config import RunConfig
from benchmarks.run.folder import RunFolder
from benchmarks.tables import Table, as_csv
from meta_agent_rag.statistics import Difference, verdict
from tests.benchmark_rows import DEFICITS, QUADRANTS, SURE, failed, once, round_of, row
from tests.loop import settings_in

METHODS = ("metarag", "standard_rag", "closed_book")
N = 40


def config(folder: Path, **fields: Any) -> RunConfig:
    given = {"dataset": "hotpotqa", "mode": "gold", "methods": METHODS, "n": N, "seed": 1, "oracles": ("monitor",)}
    return RunConfig(**{**given, "settings": settings_in(folder), **fields})


def looped(identity: str, name: str, dice: random.Random) -> dict[str, Any]:
    """A question with one repair; the first draft's cosine roughly separates right from wrong."""
    first, last = float(dice.random() < 0.5), float(dice.random() < 0.7)
    recall = dict.fromkeys(("retrieved", "packed", "quoted", "used"), 1.0)
    rounds = [
        round_of(
            0,
            "a",
            first,
            signals={**SURE, "similarity": 0.4 * first + 0.6 * dice.random()},
            diagnosis={"deficit": dice.choice(DEFICITS)},
            evidence_recall=recall,
            answer_recall=recall,
        ),
        round_of(1, "b", last, deficit=dice.choice(DEFICITS), evidence_recall=recall),
    ]
    return row(identity, rounds, method=name, latency_s=1 + dice.random())


def rows(run: RunConfig) -> list[dict[str, Any]]:
    dice = random.Random(5)
    made = []
    for arm in run.arms:
        for place in range(N - 1):
            one = once(f"q{place}", float(dice.random() < 0.3), method=arm.name, cost_usd=None)
            made.append(looped(f"q{place}", arm.name, dice) if arm.method.loop else one)
        made.append(failed("bad", method=arm.name, error="RefusedError: no\n| really"))
    return made


def summary_of(run: RunConfig, made: list[dict[str, Any]]) -> dict[str, Any]:
    return summarise(made, dataset=run.dataset, mode=run.mode, n=N, seed=1, arms=run.arms, deficits=QUADRANTS)


def report(folder: Path, run: RunConfig, made: list[dict[str, Any]], *, plots: bool = False) -> str:
    """The report of these rows."""
    ours = protocol(run, n=N, pooled=N)
    write_report(RunFolder(folder), run, summary_of(run, made), made, arms=run.arms, protocol=ours, plots=plots)
    return (folder / "report.md").read_text()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with three methods and an oracle."""
    folder = tmp_path_factory.mktemp("run")
    run = config(folder)
    report(folder, run, rows(run), plots=True)
    return folder


def test_every_plot_is_a_png_included_in_the_report(written: Path) -> None:
    text = (written / "report.md").read_text()
    drawn = {path.name for path in (written / "plots").iterdir()}
    assert drawn >= {"quality.png", "calibration.png", "cost.png"}
    for name in drawn:
        assert (written / "plots" / name).read_bytes().startswith(b"\x89PNG")
        assert f"](plots/{name})" in text


def test_every_table_is_written_as_csv(written: Path) -> None:
    quality, varied = ((written / "tables" / f"{name}.csv").read_text() for name in ("quality", "varied"))
    assert "oracle" not in quality
    assert varied.count("metarag oracle monitor") == 1
    files = {path.name for path in (written / "tables").iterdir()}
    assert {"flips.csv", "monitor.csv", "comparison.csv", "error-budget.csv", "published.csv"} <= files


def test_a_file_in_place_of_the_plots_folder_is_survived(tmp_path: Path) -> None:
    (tmp_path / "plots").write_text("a file where the folder should be")
    run = config(tmp_path, oracles=())
    text = report(tmp_path, run, rows(run), plots=True)
    assert "The plot 'quality' could not be drawn: FileExistsError" in text


def compared(difference: float, low: float, high: float, p: float = 0.5) -> Mapping[str, Any]:
    figures = {"f1": 50.0, "em": 40.0, "f1_ci95": [45.0, 55.0], "em_ci95": [35.0, 45.0]}
    known = verdict(Difference(mean=difference, low=low, high=high), p)
    found = {"f1": {"difference": difference, "ci95": [low, high], "p": p, "verdict": known}}
    return {
        "n": 100,
        "methods": {"metarag": figures, "standard_rag": {**figures, "f1": 48.0}, "react": {**figures, "f1": 30.0}},
        "comparison": {"method": "metarag", "against": {"standard_rag": found, "react": found}},
    }


@pytest.mark.parametrize(
    ("difference", "low", "high", "p", "said"),
    [
        (2.0, -1.0, 5.0, 0.04, "does not differ significantly from standard_rag"),
        (2.0, 0.0, 5.0, 0.04, "does not differ significantly from standard_rag"),
        (5.0, 1.0, 9.0, 0.05, "does not differ significantly from standard_rag"),
        (5.0, 1.0, 9.0, 0.049, "scores higher than standard_rag"),
        (-5.0, -9.0, -1.0, 0.0001, "scores lower than standard_rag"),
    ],
)
def test_the_headline_claims_no_more_than_interval_and_p_value(
    difference: float, low: float, high: float, p: float, said: str
) -> None:
    sentence = headline(compared(difference, low, high, p))
    assert said in sentence
    assert ("p < 0.001" if p < 0.001 else f"p = {p:.3f}") in sentence
    assert "the best of the 2 other methods" in sentence
    assert f"[{low:+.1f}, {high:+.1f}]" in sentence


def test_judge_figures_state_the_number_of_judged_answers(tmp_path: Path) -> None:
    run = config(tmp_path, methods=("standard_rag", "closed_book"), oracles=(), sweeps=("SELECTION=best,last",))
    made = []
    for arm in run.arms:
        failing = arm.name == "standard_rag SELECTION=last"
        verdicts = [None if failing else 1.0, *[1.0] * 18, *[0.0] * 20]
        made += [once(f"q{place}", 1.0, method=arm.name, judge=found) for place, found in enumerate(verdicts)]
        made.append(failed("bad", method=arm.name))
    text = report(tmp_path, run, made)
    assert text.count("] (38 of 39) |") == 1
    assert text.count("| 48.7 [") == text.count("] (39 of 39) |") == 3


@pytest.mark.parametrize("fails", ["measure", "tables"])
def test_an_analysis_that_fails_costs_only_its_own_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def fault(_: object) -> Any:
        raise ZeroDivisionError("no rows")

    broken = Analysis(
        name="broken",
        title="A broken one",
        about=["It is broken."],
        **{"measure": lambda material: {"metarag": {"n": 1}}, fails: fault},  # type: ignore[arg-type]
    )
    found = (*discover_analyses(), broken)
    for module in ("benchmarks.rows.summary", "benchmarks.report.document"):
        monkeypatch.setattr(f"{module}.discover_analyses", lambda: found)
    run = config(tmp_path)
    text = report(tmp_path, run, rows(run))
    assert "The analysis 'broken' failed in" in text.split("## A broken one")[1]
    assert sum(f"## {one.title}" in text for one in found) > 1


def test_an_interval_becomes_columns_of_numbers() -> None:
    rows = (("a | b", "83.3 [50.0, 100.0]"), ("c, d", "-"))
    read = csv.DictReader(io.StringIO(as_csv(Table(name="t", title="t", head=("method", "EM [95 %]"), rows=rows))))
    assert list(read) == [
        {"method": "a | b", "EM": "83.3", "EM low": "50.0", "EM high": "100.0"},
        {"method": "c, d", "EM": "-", "EM low": "", "EM high": ""},
    ]

"""The report opens with a headline that the data support, draws its plots, and survives a failing one."""

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.plots import Plot, save
from benchmarks.report import markdown, protocol, write_report
from benchmarks.report.document import Section, document, headline
from benchmarks.report.published import other_protocols, same_protocol
from benchmarks.rows.summary import summarise
from benchmarks.run.config import RunConfig
from benchmarks.run.folder import RunFolder
from benchmarks.run.protocols import Protocol
from meta_agent_rag.statistics.paired import Difference, verdict
from tests.benchmark_rows import DEFICITS, SURE, failed, once, round_of, row
from tests.loop import settings_in

METHODS = ("metarag", "standard_rag", "closed_book")
N = 40


def config(folder: Path, **fields: Any) -> RunConfig:
    given = {
        "dataset": "hotpotqa",
        "mode": "gold",
        "methods": METHODS,
        "n": N,
        "limit": None,
        "seed": 1,
        "data_file": None,
        "aliases_file": None,
        "corpus": None,
        "concurrency": None,
        "settings": settings_in(folder),
        "oracles": ("monitor",),
    }
    return RunConfig(**{**given, **fields})


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
    names = [arm.name for arm in run.arms]
    options: dict[str, Any] = {"dataset": run.dataset, "mode": run.mode, "n": N, "seed": 1, "deficits": DEFICITS}
    return summarise(made, methods=names, arms=run.arms, **options)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with three methods and an oracle."""
    folder = tmp_path_factory.mktemp("run")
    run = config(folder)
    made = rows(run)
    ours = protocol(run, n=N, pooled=N)
    write_report(RunFolder(folder), run, summary_of(run, made), made, arms=run.arms, ours=ours)
    return folder


def test_the_report_has_all_its_sections(written: Path) -> None:
    text = (written / "report.md").read_text()
    assert text.startswith("**metarag (")
    assert text.split("\n\n")[0].count("paired difference") == 1
    for heading in ("Quality", "Against the other methods", "Flips", "Calibration", "Diagnosis", "Error budget"):
        assert f"\n## {heading}" in text
    assert "- metarag bad: RefusedError: no | really" in text
    assert "not comparable" in text


def test_repairs_have_a_table_if_there_were_any(written: Path, tmp_path: Path) -> None:
    assert "\n## Repairs by deficit\n" in (written / "report.md").read_text()
    run = config(tmp_path)
    made = [one for one in rows(run) if not one.get("fired")]
    shown = markdown(run, summary_of(run, made), made, protocol(run, n=N, pooled=N), run.arms)
    assert "Repairs by deficit" not in shown


def test_every_plot_is_a_png_included_in_the_report(written: Path) -> None:
    text = (written / "report.md").read_text()
    drawn = {path.name for path in (written / "plots").iterdir()}
    assert drawn >= {"quality.png", "flips.png", "calibration.png", "cost.png", "latency.png"}
    for name in drawn:
        assert (written / "plots" / name).read_bytes().startswith(b"\x89PNG")
        assert f"](plots/{name})" in text


def test_every_table_is_written_as_csv_and_latex(written: Path) -> None:
    files = {path.name for path in (written / "tables").iterdir()}
    assert {"quality.csv", "quality.tex", "flips.csv", "monitor.tex", "comparison.csv", "error-budget.csv"} <= files
    assert {name.partition(".")[2] for name in files} == {"csv", "tex"}
    assert len(files) % 2 == 0


def test_oracle_rows_are_separate_from_results(written: Path) -> None:
    quality, varied = ((written / "tables" / f"{name}.csv").read_text() for name in ("quality", "varied"))
    assert "oracle" not in quality
    assert varied.count("metarag oracle monitor") == 1


def test_drawing_twice_produces_identical_bytes(tmp_path: Path, written: Path) -> None:
    run = config(tmp_path)
    made = rows(run)[::-1]
    ours = protocol(run, n=N, pooled=N)
    write_report(RunFolder(tmp_path), run, summary_of(run, made), rows(run), arms=run.arms, ours=ours)
    for name in ("report.md", "plots/quality.png", "plots/flips.png", "tables/flips.tex"):
        assert (tmp_path / name).read_bytes() == (written / name).read_bytes()


def test_a_failed_plot_is_reported_and_nothing_else_is_lost(tmp_path: Path) -> None:
    def broken(_figure: object) -> None:
        raise ValueError("no\nink")

    run = config(tmp_path, oracles=())
    made = rows(run)
    plot = Plot(name="broken", title="Broken", draw=broken)
    with pytest.raises(ValueError, match="no"):
        save(plot, tmp_path)
    assert list(tmp_path.glob("*broken*")) == []
    section = Section(title="Here", text="all of it", plots=[plot])
    ours = protocol(run, n=N, pooled=N)
    text = document(run, summary_of(run, made), [section], ours, {"broken": "ValueError: no ink"})
    assert "all of it\n\nThe plot 'broken' could not be drawn: ValueError: no ink" in text


def test_a_file_in_place_of_the_plots_folder_is_survived(tmp_path: Path) -> None:
    (tmp_path / "plots").write_text("a file where the folder should be")
    run = config(tmp_path, oracles=())
    made = rows(run)
    ours = protocol(run, n=N, pooled=N)
    write_report(RunFolder(tmp_path), run, summary_of(run, made), made, arms=run.arms, ours=ours)
    assert "The plot 'quality' could not be drawn: FileExistsError" in (tmp_path / "report.md").read_text()


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


def test_a_single_method_is_reported_with_its_intervals() -> None:
    figures = {**compared(0, 0, 0)["methods"]["metarag"], "n": 100, "answered": 98, "errors": 2}
    sentence = headline({"n": 100, "methods": {"metarag": figures}})
    assert "50.0 [45.0, 55.0] F1" in sentence
    assert "98 answered, 2 failed" in sentence


def test_judge_figures_state_the_number_of_judged_answers(tmp_path: Path) -> None:
    run = config(tmp_path, methods=("standard_rag", "closed_book"), oracles=(), sweeps=("SELECTION=best,last",))
    made = []
    for arm in run.arms:
        failing = arm.name == "standard_rag SELECTION=last"
        verdicts = [None if failing else 1.0, *[1.0] * 18, *[0.0] * 20]
        made += [once(f"q{place}", 1.0, method=arm.name, judge=found) for place, found in enumerate(verdicts)]
        made.append(failed("bad", method=arm.name))
    ours = protocol(run, n=N, pooled=N)
    text = markdown(run, summary_of(run, made), made, ours, run.arms)
    assert text.count("] (38 of 39) |") == 1
    assert text.count("| 48.7 [") == text.count("] (39 of 39) |") == 3
    assert "missing for 1 of 156 answers" in text


def test_published_rows_are_compared_only_under_the_same_protocol() -> None:
    other = Protocol(dataset="hotpotqa", evidence="supplied_context", model="m", n=500)
    methods = {"metarag": {**compared(0, 0, 0)["methods"]["metarag"], "precision": 1.0, "recall": 1.0}}
    assert same_protocol(other, methods) is None
    tables = other_protocols(other)
    assert sum(len(table.rows) for table in tables) == 16
    assert len({table.title for table in tables}) == len(tables) == 8
    # a protocol that states only what the paper states, and the same: its seven rows are comparable
    same = replace(other, evidence="open_domain_wikipedia", model="gpt-35-turbo-16k")
    together = same_protocol(same, methods)
    assert together is not None
    assert [line[-1] for line in together.rows].count("this run") == 1
    assert len(together.rows) == 8

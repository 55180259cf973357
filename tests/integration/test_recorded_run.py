"""The packaged recorded run: its table is reproduced, and reported figures match a manual count."""

import csv
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.compare import app as compare
from benchmarks.runner import app
from benchmarks.tools.findings import rendered
from benchmarks.tools.pack import packed
from tests.trees import copied_tree, in_tree

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
RECORD = ROOT / "benchmarks" / "recorded" / "sample.jsonl.gz"


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the replay."""
    results = tmp_path_factory.mktemp("recorded") / "RESULTS"
    done = CliRunner().invoke(app, ["--replay", str(RECORD), "--output-dir", str(results)])
    assert done.exit_code == 0, done.output
    assert "byte for byte" in done.stdout
    (folder,) = results.iterdir()
    return folder


def records() -> Iterator[Any]:
    """Every record; most are slow to replay."""
    for record in sorted(RESULTS.rglob("*.jsonl.gz")):
        quick = record.name in {"hotpotqa-gold-91-120.jsonl.gz", "2wikimultihopqa-gold-91-120.jsonl.gz"}
        yield pytest.param(record, id=record.name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize("record", list(records()))
def test_every_record_replays_to_the_same_bytes_and_is_listed(record: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--replay", str(record), "--output-dir", str(tmp_path / "RESULTS"), "--no-plots"])
    assert done.exit_code == 0, done.output
    assert "byte for byte" in done.stdout
    shown = (RESULTS / "README.md").read_text(encoding="utf-8")
    assert f"| `{record.relative_to(RESULTS)}` |" in shown


@pytest.mark.slow
@pytest.mark.parametrize("document", ["README.md", "docs/findings.md"])
def test_the_tables_of_the_findings_match_the_records(document: str) -> None:
    # to update them: `python -m benchmarks.tools.findings README.md docs/findings.md`
    text = (ROOT / document).read_text(encoding="utf-8")
    assert "<!-- table: quality -->" in text
    assert rendered(text) == text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2wikimultihopqa", "hotpotqa", "musique"])
def test_the_packed_runs_match_their_records(name: str, tmp_path: Path) -> None:
    # to update one: `python -m benchmarks.tools.pack RUN benchmarks/recorded/NAME.zip`
    record = RECORD.with_name(f"{name}.jsonl.gz")
    done = CliRunner().invoke(app, ["--replay", str(record), "--output-dir", str(tmp_path / "RESULTS")])
    assert done.exit_code == 0, done.output
    (folder,) = (tmp_path / "RESULTS").iterdir()
    with zipfile.ZipFile(record.with_suffix("").with_suffix(".zip")) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    now = dict(packed(folder, record))
    assert [name for name in kept if not name.startswith("plots/")] == [
        name for name in now if not name.startswith("plots/")
    ]
    assert timeless(kept.pop("samples.jsonl")) == timeless(now["samples.jsonl"])
    of_the_day = ("config.json", "plots/")
    assert [name for name, content in kept.items() if not name.startswith(of_the_day) and content != now[name]] == []


def timeless(samples: bytes) -> list[dict[str, Any]]:
    """The rows, ignoring their order and what was measured during the replay."""
    rows = sorted((json.loads(line) for line in samples.splitlines()), key=lambda row: (row["id"], row["method"]))
    for row in rows:
        for round_ in row["rounds"]:
            del round_["seconds"]
    return rows


DEFICIT = """
from .deficit import Deficit

DEFICIT = Deficit(
    name="outdated_facts",
    when="the passages are older than the time that the question asks about",
    directive="Name the date of each passage, and prefer the newest.",
    answer_mode="evidence",
    retrieves=True,
    examples=("the passage is of 1990, and the question asks for the mayor today",),
    priority=5,
)
"""
ANALYSIS = """
from .analysis import Analysis

ANALYSIS = Analysis(
    name="answers",
    title="Answers",
    about=("How many there are.",),
    measure=lambda material: {arm.name: {"n": len(material.answered(arm))} for arm in material.arms},
)
"""
TARIFF = """
  - models: [deepseek-flash, deepseek-v4-flash, deepseek-v4-pro]
    from: 2999-01-01
    cache_hit: "1"
    cache_miss: "2"
    completion: "3"
"""
REPLAY_ALL = """
import sys
from typer.testing import CliRunner
from benchmarks.runner import app

for record in sys.argv[1:]:
    done = CliRunner().invoke(app, ["--replay", record, "--no-plots", "--display", "plain"])
    assert done.exit_code == 0, done.output
    print(done.stdout.splitlines()[-1])
"""


@pytest.mark.slow
def test_records_score_the_same_after_prompts_deficits_and_prices_change(tmp_path: Path) -> None:
    tree = copied_tree(tmp_path / "tree", "backend", "benchmarks")
    package = tree / "backend" / "meta_agent_rag"
    prompts = [file for file in package.rglob("*.yaml") if "instruction: |\n" in file.read_text()]
    assert len(prompts) >= 10
    for file in prompts:
        file.write_text(file.read_text().replace("instruction: |\n", "instruction: |\n  Read the question twice.\n"))
    (package / "agent" / "deficits" / "outdated_facts.py").write_text(DEFICIT)
    (tree / "benchmarks" / "analyses" / "answers.py").write_text(ANALYSIS)
    with (package / "llm" / "tariffs.yaml").open("a") as tariffs:
        tariffs.write(TARIFF)
    names = ("one_machine/hotpotqa", "diagnosis/2wikimultihopqa", "musique-gold")
    records = [str(record) for record in (RECORD, *(RESULTS / f"{name}.jsonl.gz" for name in names))]
    done = in_tree(tree, "-c", REPLAY_ALL, *records)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()
    assert len(last) == len(records)
    assert all("byte for byte" in line for line in last)


def test_two_methods_compare_as_counted_by_hand(replayed: Path) -> None:
    # from the ten questions: standard_rag is right on sample-006 and sample-048, metarag on none; by F1
    # metarag wins sample-037 (2/19 against 0) and loses sample-006, sample-010 (1/7 against 1/2) and sample-048
    done = CliRunner().invoke(compare, [str(replayed), "--method-a", "standard_rag", "--method-b", "metarag", "--json"])
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    counts = [shown[name] for name in ("both_right", "only_a_right", "only_b_right", "neither_right")]
    assert counts == [0, 2, 0, 8]
    assert shown["mcnemar_p"] == 0.5  # two-sided: two heads in two tosses
    assert (shown["wins"], shown["losses"], shown["ties"]) == (1, 3, 6)
    assert [row["id"] for row in shown["won"]] == ["sample-037"]
    assert {row["id"] for row in shown["lost"]} == {"sample-006", "sample-010", "sample-048"}
    assert shown["scores"]["f1"]["a"]["mean"] == pytest.approx(100 * 3 / 10)
    assert shown["scores"]["f1"]["b"]["mean"] == pytest.approx(100 * (1 / 7 + 1 / 2 + 2 / 19) / 10, abs=1e-4)
    assert shown["permutation_p"] == 4 / 16  # of the 16 sign patterns of four differences, 4 are as extreme


def test_zero_cost_is_shown_as_free_in_every_table(replayed: Path) -> None:
    for name in ("quality", "cost"):
        rows = list(csv.DictReader((replayed / "tables" / f"{name}.csv").read_text().splitlines()))
        assert {row["USD"] for row in rows} == {"free"}, name

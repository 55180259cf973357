"""The recorded run that ships: its table again, and what is told of it, by hand."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.compare import app as compare
from benchmarks.methods import discover_methods
from benchmarks.runner import app
from tests.integration.test_runner import lines

ROOT = Path(__file__).parents[2]
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


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def test_all_methods_are_in_it(replayed: Path) -> None:
    assert set(summary(replayed)["methods"]) == set(discover_methods())
    for name in ("quality", "flips", "calibration", "cost", "latency"):
        assert (replayed / "plots" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (replayed / "tables" / "quality.csv").exists()
    assert (replayed / "tables" / "quality.tex").exists()


def test_the_readme_has_its_table(replayed: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, figures in summary(replayed)["methods"].items():
        told = re.search(rf"^\| `{name}` \| (.*) \|$", readme, re.MULTILINE)
        assert told is not None, f"{name} is missing from the README's table"
        em, f1, calls = (cell.strip() for cell in told[1].split("|")[:3])
        for said, score in ((em, "em"), (f1, "f1")):
            low, high = figures[f"{score}_ci95"]
            assert said == f"{figures[score]:.1f} [{low:.1f}, {high:.1f}]", name
        assert calls == f"{figures['llm_calls'] / figures['n']:.1f}", name

"""The report describes the calibration in force, and how far it is off on the run."""

from pathlib import Path

import pytest
import yaml

from benchmarks.analyses.p_correct import ANALYSIS
from meta_agent_rag.agent.calibration import calibration_of_votes, read_calibration
from meta_agent_rag.settings import Settings
from tests.unit.test_calibration import file_content, written

FIGURES = {
    "metarag": {
        "first drafts": {"n": 4, "stated": 0.7, "right": 0.5},
        "returned answers": {"n": 4, "stated": 0.7, "right": 0.75},
    },
    "metarag K=V": {
        "first drafts": {"n": 4, "stated": 0.4, "right": 0.5},
        "returned answers": {"n": 0, "stated": None, "right": None},
    },
}
WEIGHTS = {"share": {"mean": 0.5, "scale": 0.25, "weight": 2.0}}


def test_the_packaged_calibration_is_described_once() -> None:
    settings = Settings.load([])
    (said,) = ANALYSIS.about_run(FIGURES, dict.fromkeys(FIGURES, settings))
    assert said.startswith("The packaged calibration was fitted with qwen2.5-coder-1.5b")
    assert " and the encoder all-MiniLM-L6-v2 on " in said
    assert said.endswith("is at most 20.0 percentage points above the share correct (first drafts of metarag).")


def test_each_row_is_described_by_its_own_calibration(tmp_path: Path) -> None:
    path = written(tmp_path, file_content(encoder="hash-64", signals=WEIGHTS))
    own = Settings.load([f"MONITOR_CALIBRATION={path}"])
    packaged, named = ANALYSIS.about_run(FIGURES, {"metarag": Settings.load([]), "metarag K=V": own})
    assert "(used by metarag)" in packaged
    assert named == (
        "The calibration `monitor.yaml` was fitted with f and p and the encoder hash-64 on 1 question of sample "
        "(used by metarag K=V); here its mean is at most 10.0 percentage points below the share correct (first drafts "
        "of metarag K=V)."
    )
    path.unlink()
    (gone,) = ANALYSIS.about_run({"metarag": FIGURES["metarag"]}, {"metarag": own})
    assert gone.startswith("The calibration `monitor.yaml` can no longer be read; here its mean")


def test_only_a_calibration_that_weighs_the_cosine_depends_on_the_encoder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = "MONITOR_ENCODER=hash-64"
    calibration_of_votes(Settings.load([other]))
    without = tmp_path / "without.yaml"
    without.write_text(yaml.safe_dump(file_content(signals=WEIGHTS)))
    calibration_of_votes(Settings.load([other, f"MONITOR_CALIBRATION={without}"]))
    assert not caplog.messages
    cosine = tmp_path / "cosine.yaml"
    cosine.write_text(yaml.safe_dump(file_content()))
    for _ in range(2):
        found = calibration_of_votes(Settings.load([other, f"MONITOR_CALIBRATION={cosine}"]))
    assert found == read_calibration(cosine)
    (said,) = caplog.messages
    assert said.startswith(
        "The calibration 'cosine.yaml' weighs the cosine of 'all-MiniLM-L6-v2', while MONITOR_ENCODER is 'hash-64'; "
        "MONITOR_POLICY=vote measures no cosine, so p_correct may be off: fit one with"
    )

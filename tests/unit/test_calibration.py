"""The calibrated policy: its file, arithmetic and fit, and the input it rejects."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.calibrate import FirstDraft, first_drafts, fit, folds
from benchmarks.run.folder import past_run
from meta_agent_rag.agent.calibration import (
    probability,
    question_fingerprint,
    read_calibration,
    refuse_fitted_questions,
    text_fingerprint,
)
from meta_agent_rag.agent.state import Signals
from meta_agent_rag.errors import InputError, SettingsError
from tests.first_drafts import telling
from tests.past_runs import write_run


def file_content(**changes: Any) -> dict[str, Any]:
    """A handmade calibration: log-odds 2 (similarity - 0.5) / 0.25 - 3 similarity_missing + 1."""
    return {
        "version": 3,
        "encoder": "all-MiniLM-L6-v2",
        "signals": {
            "similarity": {"mean": 0.5, "scale": 0.25, "weight": 2.0},
            "similarity_missing": {"mean": 0.0, "scale": 1.0, "weight": -3.0},
        },
        "bias": 1.0,
        "threshold": 0.5,
        "fitted_on": {
            "datasets": ["sample"],
            "runs": ["r"],
            "models": {"flash": "f", "pro": "p"},
            "method": "metarag",
            "n": 40,
            "right": 20,
            "auroc": 0.8,
            "ece": 0.1,
            "questions": [question_fingerprint("sample", "q1")],
            "texts": [text_fingerprint("Where was the author of the Edda born?")],
        },
        **changes,
    }


def written(folder: Path, content: object) -> Path:
    path = folder / "monitor.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def signals(similarity: float | None) -> Signals:
    return Signals(similarity=similarity, agreement=None, verbatim=None, abstained=False, evidence_passages=2)


@pytest.mark.parametrize(("similarity", "odds"), [(0.5, 1.0), (0.75, 3.0), (0.0, -3.0), (None, -2.0)])
def test_the_probability_is_the_logistic_of_the_weighted_signals(
    tmp_path: Path, similarity: float | None, odds: float
) -> None:
    calibration = read_calibration(written(tmp_path, file_content()))
    assert probability(signals(similarity), calibration) == pytest.approx(1 / (1 + math.exp(-odds)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (file_content(version=1), "has version 1, but version 3 is needed"),
        (file_content(threshold=1.5), r"malformed \(field 'threshold': it must be at most 1, found 1\.5\)"),
        (file_content(signals={"mood": {"mean": 0, "scale": 1, "weight": 1}}), "unknown signal 'mood'"),
    ],
)
def test_a_malformed_file_is_reported_in_one_sentence(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        read_calibration(written(tmp_path, content))
    assert "\n" not in str(caught.value)
    assert "marag bench calibrate" in str(caught.value)


def test_questions_used_in_the_fit_are_rejected_and_counted(tmp_path: Path) -> None:
    calibration = read_calibration(written(tmp_path, file_content()))
    with pytest.raises(InputError, match="fitted on 1 of these 2 questions of 'sample'"):
        refuse_fitted_questions(calibration, "sample", [("q1", "One?"), ("q2", "Two?"), ("q2", "Two?")])
    refuse_fitted_questions(calibration, "sample", [("q2", "Two?")])
    refuse_fitted_questions(calibration, "hotpotqa", [("q1", "One?")])


def drafts_of(folder: Path, rows: list[dict[str, Any]]) -> list[FirstDraft]:
    return first_drafts(past_run(str(write_run(folder / "run", rows)), Path("RESULTS")), "metarag")


def test_the_fit_finds_the_informative_signal(tmp_path: Path) -> None:
    drafts = drafts_of(tmp_path, telling(200))
    found, happened, quality = fit(drafts, encoder="e", runs=["run"], models={"pro": "p"}, method="metarag")
    weights = {name: weight.weight for name, weight in found.signals.items()}
    assert max(weights, key=lambda name: abs(weights[name])) == "agreement"
    assert weights["agreement"] > 1.0
    assert "verbatim" not in weights  # constant over all drafts
    assert quality.auroc is not None
    assert quality.auroc > 0.75
    assert quality.ece < 0.15
    assert found.fitted_on.n == 200
    assert found.threshold == pytest.approx(happened.break_even, abs=1e-4)


def test_a_question_under_several_ids_stays_in_one_fold(tmp_path: Path) -> None:
    rows = telling(40)
    renamed = [{**row, "id": f"again-{row['id']}"} for row in rows]
    drafts = drafts_of(tmp_path, [*rows, *renamed])
    for learned, held_out in folds(drafts):
        assert not {drafts[index].question for index in learned} & {drafts[index].question for index in held_out}
    found = fit(drafts, encoder="e", runs=["run"], models={"pro": "p"}, method="metarag")[0].fitted_on
    assert (len(found.questions), len(found.texts)) == (80, 40)

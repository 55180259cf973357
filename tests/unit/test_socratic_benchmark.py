"""The coach's benchmark on its scripted explainer: its output, and that the figures are correct."""

import json
from pathlib import Path

from typer.testing import CliRunner

from benchmarks.coaching.course import read_course
from benchmarks.coaching.explainer import data
from benchmarks.socratic import app


def test_the_benchmark_prints_one_json_object() -> None:
    done = CliRunner().invoke(app, ["--no-encoder", "--turns", "30", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["replies"] == 30
    assert told["violations_before"] == 1.0
    assert 0.0 < told["violations_after_retry"] < 1.0
    assert told["violations_after"] == 0.0
    assert (told["retries"], told["most_retries_of_a_reply"]) == (30, 1)
    assert sum(told["outcomes"].values()) == 30
    assert "scope" not in told
    for hook, shares in told["hooks"].items():
        assert shares["after"] < shares["before"], hook
    # the stated limit is 20 ms; a busy machine may take longer
    assert told["latency"]["without_encoder"]["p95_ms"] < 200


def test_the_benchmark_prints_text_and_reports_a_missing_course(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--no-encoder", "--turns", "6"])
    assert done.exit_code == 0, done.output
    assert "0.0% of replies shown" in done.stdout
    missing = CliRunner().invoke(app, ["--course", str(tmp_path)])
    assert missing.exit_code == 2
    assert "No course" in missing.output


def test_the_sample_course_has_enough_passages_and_questions() -> None:
    course = read_course()
    assert [topic.name for topic in course.topics] == ["seasons", "sundials", "time"]
    assert len(course.passages) >= 15
    assert len(data("questions")["within"]) >= 30
    assert len(data("questions")["outside"]) >= 30

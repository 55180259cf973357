"""The coach's benchmark on its scripted explainer: its output, and that the figures are correct."""

import json

from typer.testing import CliRunner

from benchmarks.socratic import app


def test_the_benchmark_prints_one_json_object() -> None:
    done = CliRunner().invoke(app, ["--no-encoder", "--turns", "30", "--json"])
    assert done.exit_code == 0, done.output
    reported = json.loads(done.stdout)
    assert reported["replies"] == 30
    assert reported["violations_before"] == 1.0
    assert 0.0 < reported["violations_after_retry"] < 1.0
    assert reported["violations_after"] == 0.0
    assert (reported["retries"], reported["most_retries_of_a_reply"]) == (30, 1)
    assert sum(reported["outcomes"].values()) == 30
    assert "scope" not in reported
    for hook, shares in reported["hooks"].items():
        assert shares["after"] < shares["before"], hook
    # the stated limit is 20 ms; a busy machine may take longer
    assert reported["latency"]["without_encoder"]["p95_ms"] < 200

"""The tour: which recorded answers it shows, and how the terminal displays them."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from meta_agent_rag.demo import run_files as stops
from tests.terminal import at_terminal


def test_the_tour_shows_each_deficit_a_failure_and_a_right_draft() -> None:
    found = stops.tour()
    diagnosed = [[(one["diagnosis"] or {}).get("deficit") for one in stop.row["rounds"]] for stop in found]
    named = ["reasoning_error", "reasoning_error", "external_only", "insufficient_knowledge"]
    assert [names[0] for names in diagnosed[:4]] == named
    assert "internal_only" in diagnosed[4][1:]
    for stop in found[:5]:
        assert stop.row["f1"] > stop.row["rounds"][0]["f1"]
        assert stop.one_pass is not None
        assert stop.row["f1"] > stop.one_pass["f1"]
    failed, kept = found[5].row, found[6].row
    assert (failed["f1"] < stops.RIGHT, len(failed["rounds"]) > 1) == (True, True)
    assert (kept["f1"], len(kept["rounds"])) == (1, 1)


def test_the_command_shows_one_stop() -> None:
    one = CliRunner().invoke(app, ["tour", "2"])
    assert one.exit_code == 0, one.output
    assert one.stdout.count("Question (") == 1
    assert "2 of 7" in one.stdout


@pytest.mark.parametrize("number", ["8", "0", "-1", "first"])
def test_an_unknown_stop_is_rejected(number: str) -> None:
    refused = CliRunner().invoke(app, ["tour", "--", number])
    assert refused.exit_code == 2
    assert "Traceback" not in refused.output


def test_at_a_terminal_enter_continues_and_q_quits() -> None:
    with at_terminal(["tour"], {}) as screen:
        screen.until("Enter: next step")
        assert "Evidence." not in screen.text
        screen.press(b"\r")
        screen.until("Evidence.")
        screen.press(b"q\r")
        assert screen.until_end() == 0


def test_the_first_stop_needs_no_model_and_no_heavy_library() -> None:
    heavy = ("langgraph", "langchain_openai", "torch", "gradio", "scipy", "numpy", "tantivy", "babel")
    code = (
        "import sys; from meta_agent_rag.cli.tour import tour; tour(1, True);"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.strip() == "[]"

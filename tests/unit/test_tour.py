"""The tour: which recorded answers it shows, and how the terminal displays them."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from meta_agent_rag.demo import run_files as stops
from meta_agent_rag.demo.run_files import Run
from tests.terminal import at_terminal


def test_the_tour_shows_each_repaired_deficit_a_failure_and_a_right_draft() -> None:
    found = stops.tour()
    assert len({stop.row["id"] for stop in found}) == len(found) == 7
    for name in ("reasoning_error", "external_only", "insufficient_knowledge"):
        (stop,) = [one for one in found[:3] if one.diagnosed[0] == name]
        assert stop.gain > 0
        assert (stop.advantage > 0) is ("one pass was right too" not in stop.shows)
    remembered, failed, kept, other = found[3:]
    assert remembered.shows == "Internal only, in a later round"
    assert "internal_only" in {(one["diagnosis"] or {}).get("deficit") for one in remembered.row["rounds"][1:]}
    assert any(fact["from_memory"] for one in remembered.row["rounds"] for fact in one["derivation"]["facts"])
    assert failed.row["f1"] < stops.RIGHT
    assert len(failed.row["rounds"]) > 1
    assert kept.row["f1"] == 1
    assert len(kept.row["rounds"]) == 1
    assert other.run.name == "recorded: HotpotQA"
    assert all(stop.one_pass is not None for stop in found)


def row(id_: str, *f1: float, deficit: str | None = None, method: str = "metarag") -> Mapping[str, Any]:
    rounds: list[dict[str, Any]] = [{"f1": one, "diagnosis": None, "derivation": None} for one in f1]
    rounds[0]["diagnosis"] = deficit and {"deficit": deficit}
    for later in rounds[1:]:
        later["plan"] = {"deficit": deficit}
    return {"id": id_, "method": method, "f1": f1[-1], "rounds": rounds, "error": None}


def test_stops_are_chosen_by_gain_then_advantage_then_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        row("a", 0.2, 0.5, deficit="reasoning_error"),
        row("b", 0.0, 1.0, deficit="reasoning_error"),
        row("c", 0.0, 1.0, deficit="reasoning_error"),
        row("b", 0.3, method="standard_rag"),
        row("d", 1.0, 0.0, deficit="external_only"),
        row("e", 1.0),
        row("f", 1.0),
    )
    monkeypatch.setattr(stops, "recorded_runs", lambda: (Run(name="recorded: X", rows=rows),))
    found = stops.tour()
    assert [stop.row["id"] for stop in found] == ["c", "d", "e"], "b has a smaller advantage: one pass is half right"
    assert found[0].shows == "Reasoning error: repaired"
    assert found[1].one_pass is None


def test_a_deficit_of_your_own_has_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        row("a", 0.0, 0.8, deficit="unit_slip"),
        row("b", 0.0, 0.9, deficit="reasoning_error"),
        row("c", 0.0, 1.0, deficit="reasoning_error"),
        row("d", 1.0, deficit="none"),
    )
    monkeypatch.setattr(stops, "recorded_runs", lambda: (Run(name="recorded: X", rows=rows),))
    shown = [stop.shows for stop in stops.tour()]
    assert shown == ["Reasoning error: repaired", "Unit slip: repaired", "A right draft that stays"]


def test_the_command_shows_all_stops_or_one() -> None:
    whole = CliRunner().invoke(app, ["tour"])
    assert whole.exit_code == 0, whole.output
    for words in ("Derivation.", "Vote.", "Diagnosis: Reasoning error", "one pass", "The gold answer is"):
        assert words in whole.stdout
    assert whole.stdout.count("Question (") == 7
    one = CliRunner().invoke(app, ["tour", "2"])
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
        "import sys; from meta_agent_rag.cli.tour import tour; tour(1, True, False);"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.strip() == "[]"

"""The demo's run viewer: opening, filtering and replaying runs, none of whose text becomes markup."""

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.demo.run_files import RECORDED, Run, open_run, outcome, run_names
from meta_agent_rag.demo.tabs.recorded import about, plots, replayed, settings_of
from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import Settings

NOWHERE = Path("RESULTS")
REPAIRED = "0120a36108d611ebbd98ac1f6bf848b6"
HOSTILE = "<img src=http://example.com/x onerror=alert(1)>"


@pytest.fixture(scope="module")
def recorded() -> Run:
    return open_run(next(iter(RECORDED)), NOWHERE)


@pytest.fixture(scope="module")
def repaired(recorded: Run) -> dict[str, Any]:
    """A repaired answer."""
    row = recorded.answer(REPAIRED, "metarag")
    assert row is not None
    return dict(row)


def scored(em: float, *drafts: float) -> dict[str, Any]:
    return {"id": "q", "method": "m", "em": em, "rounds": [{"em": draft} for draft in drafts], "error": None}


def folder(path: Path, *rows: Mapping[str, Any], tail: str = "") -> Path:
    path.mkdir(parents=True)
    (path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + tail, encoding="utf-8")
    return path


def test_a_recorded_run_opens_without_settings_of_the_machine(recorded: Run) -> None:
    assert not [name for name in recorded.config["settings"] if name.endswith(("_dir", "_path", "_url", "_key"))]
    assert "24 questions" in about(recorded)
    assert "qwen2.5-coder-1.5b-instruct" in about(recorded)
    assert plots(recorded).count("<img ") == len(recorded.plots) == 3


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (scored(1.0, 0.0, 1.0), "fixed"),
        (scored(0.0, 1.0, 0.0), "broken"),
        (scored(1.0, 1.0, 0.0), "still right"),  # the first draft was returned
        (scored(1.0, 1.0), "not repaired"),
        (scored(0.0, 0.0, 0.5), "still wrong"),
        ({**scored(0.0), "em": None, "error": "UnreachableError: no answer"}, "error"),
    ],
)
def test_the_outcome_of_an_answer(row: dict[str, Any], expected: str) -> None:
    assert outcome(row) == expected


def test_a_replay_states_no_more_than_the_record_holds(recorded: Run, repaired: dict[str, Any]) -> None:
    own = Settings.load(["MONITOR_POLICY=paper"])
    settings = settings_of(recorded, repaired, own)
    assert (settings.monitor_policy, settings.selection) == ("vote", "best")
    papers = settings_of(recorded, {"method": "metarag_paper"}, own)
    assert (papers.monitor_policy, papers.selection) == ("paper", "last")
    assert settings_of(recorded, {"method": "metarag SELECTION=last"}, own).selection == "last"
    steps = replayed(repaired, recorded.answer(REPAIRED, "standard_rag"), {}, settings)
    assert "2,675 tokens read, 157 written" in steps[-1]
    assert " s ·" not in steps[-1], "cached replies have no latencies"
    assert "free (runs on this machine)" in steps[-1]
    elsewhere = settings.model_copy(update={"llm_provider": "deepseek"})
    assert "price unknown" in replayed({**repaired, "cost_usd": None}, None, {}, elsewhere)[-1]
    assert "their names, not their texts" in steps[0]
    assert "is not in any passage" not in "".join(steps), "without texts, quotes are not judged"


def test_text_from_a_run_never_becomes_markup(tmp_path: Path, repaired: dict[str, Any]) -> None:
    def hostile(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: hostile(one) for name, one in value.items()}
        if isinstance(value, list):
            return [hostile(one) for one in value]
        return HOSTILE if isinstance(value, str) else value

    row = {**hostile(deepcopy(repaired)), "cost_usd": None}
    for round_ in row["rounds"]:
        round_["cost_usd"] = "0.1"
        if round_["plan"]:
            round_["plan"] |= {"answer_mode": "evidence", "repair": "conclude"}
        if round_["diagnosis"]:
            round_["diagnosis"]["source"] = "heuristic"
    run_folder = folder(tmp_path / "run", row)
    (run_folder / "summary.json").write_text(json.dumps({"dataset": HOSTILE}))
    failed = {"id": HOSTILE, "method": HOSTILE, "rounds": [], "error": HOSTILE}
    shown = replayed(row, row, {}, Settings.load()) + replayed(failed, None, {}, Settings.load())
    assert "<img src" not in "".join(shown) + about(open_run("run", tmp_path))


def test_the_runs_in_a_folder_are_listed_and_an_unfinished_one_opens(tmp_path: Path) -> None:
    folder(tmp_path / "2026-a", scored(1.0, 1.0))
    folder(tmp_path / "2026-b", scored(0.0, 1.0, 0.0), {**scored(0.0), "method": "n"}, tail='{"id": "torn')
    (tmp_path / "notes").mkdir()
    assert run_names(tmp_path) == (*RECORDED, "2026-b", "2026-a")
    assert run_names(tmp_path / "gone") == tuple(RECORDED)
    run = open_run("2026-b", tmp_path)
    assert [row["method"] for row in run.rows] == ["m", "n"]
    assert "no plots" in plots(run)
    for elsewhere in ("../2026-a", str(tmp_path / "2026-a"), "notes", ""):
        with pytest.raises(InputError, match="There is no run"):
            open_run(elsewhere, tmp_path)
    folder(tmp_path / "empty")
    with pytest.raises(InputError, match="no answer yet"):
        open_run("empty", tmp_path)
    words = r"'q' by 'm' are damaged \(field '\[0\]\.index': it is missing\); run it again\.$"
    with pytest.raises(InputError, match=words):
        replayed({**scored(0.0, 1.0), "question": "?"}, None, {}, Settings.load())

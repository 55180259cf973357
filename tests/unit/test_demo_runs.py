"""The demo's run viewer: opening, filtering and replaying runs, none of whose text becomes markup."""

import json
import zipfile
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.demo.run_cards import about, plots, replayed, settings_of, shown
from meta_agent_rag.demo.run_files import (
    RECORDED,
    Run,
    listed,
    methods,
    open_run,
    open_zip,
    outcome,
    run_names,
)
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


def scored(em: float, *drafts: float, error: str | None = None) -> dict[str, Any]:
    return {"id": "q", "method": "m", "em": em, "rounds": [{"em": draft} for draft in drafts], "error": error}


def folder(path: Path, *rows: Mapping[str, Any], tail: str = "") -> Path:
    path.mkdir(parents=True)
    (path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + tail, encoding="utf-8")
    return path


def test_a_recorded_run_opens_with_everything_the_view_shows(recorded: Run) -> None:
    assert len(recorded.rows) == 48
    assert recorded.setting("monitor_policy") == "vote"
    assert not [name for name in recorded.config["settings"] if name.endswith(("_dir", "_path", "_url", "_key"))]
    assert recorded.plots["quality"].startswith(b"\x89PNG")
    assert "24 questions" in about(recorded)
    assert "qwen2.5-coder-1.5b-instruct" in about(recorded)
    assert 'data-place="?run=recorded%3A+' in about(recorded)
    assert plots(recorded).count("<img ") == len(recorded.plots) == 3


def test_answer_filters_match_counts_by_hand(recorded: Run) -> None:
    # 15 of metarag's 24 first drafts were repaired, 12 of them successfully
    assert methods(recorded) == ("metarag", "standard_rag")
    every = listed(recorded, "metarag")
    assert (len(every), len(listed(recorded, "metarag", "fixed")), listed(recorded, "metarag", "error")) == (24, 12, [])
    assert every[0][0] == "What is the date of birth of Stephanie Von Hohenlohe's husband? — fixed · 3 rounds · F1 100"
    assert recorded.rows[int(every[0][1])]["id"] == "15decb900bda11eba7f7acde48001122"
    rest = [label for label, _ in every if "fixed" not in label]
    assert rest[0].endswith("? — still wrong · 3 rounds · F1 0")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (scored(1.0, 0.0, 1.0), "fixed"),
        (scored(0.0, 1.0, 0.0), "broken"),
        (scored(1.0, 1.0, 0.0), "still right"),  # the first draft was returned
        (scored(1.0, 1.0), "not repaired"),
        (scored(0.0, 0.0, 0.5), "still wrong"),
        (scored(0.0), "not repaired"),
        ({**scored(0.0), "em": None, "error": "UnreachableError: no answer"}, "error"),
    ],
)
def test_the_outcome_of_an_answer(row: dict[str, Any], expected: str) -> None:
    assert outcome(row) == expected


def test_a_replay_shows_every_step(recorded: Run, repaired: dict[str, Any]) -> None:
    settings = settings_of(recorded, Settings.load(["MONITOR_POLICY=paper"]))
    assert settings.monitor_policy == "vote"
    one_pass = recorded.answer(REPAIRED, "standard_rag")
    steps = replayed(repaired, one_pass, {}, settings)
    named = [step.split('aria-label="')[1].split('"')[0].partition(":")[0] for step in steps]
    first, again = ["Retrieval", "Cognition", "Monitoring"], ["Planning", "Remediation", "Cognition", "Monitoring"]
    assert named == [*first, "Evaluating", *again, "Answer"]
    assert "American and American are the same" in steps[2]
    for words in ("One pass (standard_rag)", "First draft", "Returned answer", "probability of being correct"):
        assert words in steps[-1]
    assert "2,675 tokens read, 157 written" in steps[-1]
    assert " s ·" not in steps[-1], "cached replies have no latencies"
    unpriced = {**repaired, "cost_usd": None}
    assert "price unknown" in replayed(unpriced, None, {}, settings)[-1]
    local = settings.model_copy(update={"llm_provider": "embedded"})
    assert "free (runs on this machine)" in replayed(unpriced, None, {}, local)[-1]
    page = shown(repaired, steps[:2], len(steps), {"run": "a run&b", "question": REPAIRED})
    assert "step 2 of 9" in page
    assert f'href="?run=a+run%26b&amp;question={REPAIRED}"' in page
    assert "Monitoring" not in page


def test_passages_without_a_text_are_listed_and_quotes_are_not_judged(repaired: dict[str, Any]) -> None:
    steps = "".join(replayed(repaired, None, {}, Settings.load()))
    assert "<li>samuel langdon</li>" in steps
    assert "their names, not their texts" in steps
    assert "is not in any passage" not in steps


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
    run = open_zip(_zipped(tmp_path, row))
    page = shown(row, replayed(row, row, {}, Settings.load()), 1, {"run": HOSTILE})
    for html in (page, about(run)):
        assert "<img src" not in html
    failed = {"id": HOSTILE, "method": HOSTILE, "rounds": [], "error": HOSTILE}
    assert "<img src" not in "".join(replayed(failed, None, {}, Settings.load()))


def _zipped(tmp_path: Path, *rows: Mapping[str, Any]) -> Path:
    file = tmp_path / "run.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("any name/samples.jsonl", "\n".join(map(json.dumps, rows)))
        archive.writestr("any name/summary.json", json.dumps({"dataset": HOSTILE, "methods": {HOSTILE: {}}}))
    return file


def test_the_runs_in_a_folder_are_listed_and_an_unfinished_one_opens(tmp_path: Path) -> None:
    folder(tmp_path / "2026-a", scored(1.0, 1.0))
    folder(tmp_path / "2026-b", scored(0.0, 1.0, 0.0), {**scored(0.0), "method": "n"}, tail='{"id": "torn')
    (tmp_path / "notes").mkdir()
    assert run_names(tmp_path) == (*RECORDED, "2026-b", "2026-a")
    run = open_run("2026-b", tmp_path)
    assert [row["method"] for row in run.rows] == ["m", "n"]
    assert "no plots" in plots(run)
    for elsewhere in ("../2026-a", str(tmp_path / "2026-a"), "notes", ""):
        with pytest.raises(InputError, match="There is no run"):
            open_run(elsewhere, tmp_path)
    assert run_names(tmp_path / "gone") == tuple(RECORDED)


def test_a_file_that_is_not_a_run_is_rejected_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(InputError, match="zip the folder of a benchmark run"):
        open_zip(tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("notes.txt", "nothing")
    with pytest.raises(InputError, match=r"contains no samples\.jsonl"):
        open_zip(tmp_path / "other.zip")
    folder(tmp_path / "RESULTS" / "empty")
    with pytest.raises(InputError, match="no answer yet"):
        open_run("empty", tmp_path / "RESULTS")
    words = r"'q' by 'm' are damaged \(field '\[0\]\.index': it is missing\); run it again\.$"
    with pytest.raises(InputError, match=words):
        replayed({**scored(0.0, 1.0), "question": "?"}, None, {}, Settings.load())

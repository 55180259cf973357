"""Rows of a run: long fields are read from disk on demand."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.run.folder import SAMPLES, RunFolder
from meta_agent_rag.errors import StorageError


def row(id_: str, **values: Any) -> dict[str, Any]:
    return {"id": id_, "method": "metarag", "em": 1.0, "rounds": [{"draft": "ä" * 500}], "error": None} | values


def folder_with(folder: Path, *lines: str) -> RunFolder:
    (folder / SAMPLES).write_text("\n".join(lines), encoding="utf-8")
    return RunFolder(folder)


def test_a_stored_row_equals_the_row_that_was_written(tmp_path: Path) -> None:
    kept = [row(f"q{number}", tokens={"prompt": number}, rounds=[{"index": number}]) for number in range(600)]
    folder = RunFolder(tmp_path)
    for one in kept:
        folder.add(one)
    folder.close()
    rows = folder.rows()
    assert [dict(rows[one["id"], "metarag"]) for one in kept] == kept
    assert [rows[one["id"], "metarag"]["rounds"] for one in reversed(kept)] == [one["rounds"] for one in reversed(kept)]


def test_damaged_lines_are_skipped_and_later_rows_replace_earlier_ones(tmp_path: Path) -> None:
    lines = [json.dumps(row("a")), '{"id": "b", "met', "", "[1]", json.dumps(row("a", rounds=[])), json.dumps(row("c"))]
    rows = folder_with(tmp_path, *lines).rows()
    assert list(rows) == [("a", "metarag"), ("c", "metarag")]
    assert rows["a", "metarag"]["rounds"] == []
    assert rows["c", "metarag"]["rounds"] == row("c")["rounds"]
    assert "judge" not in rows["c", "metarag"]


def test_a_file_changed_during_reading_is_reported(tmp_path: Path) -> None:
    rows = folder_with(tmp_path, json.dumps(row("a")), json.dumps(row("b"))).rows()
    (tmp_path / SAMPLES).write_text("short", encoding="utf-8")
    assert rows["b", "metarag"]["em"] == 1.0
    with pytest.raises(StorageError, match="changed while it was being read"):
        _ = rows["b", "metarag"]["rounds"]


def test_rows_do_not_keep_long_fields_in_memory(tmp_path: Path) -> None:
    rows = folder_with(tmp_path, json.dumps(row("a"))).rows()
    assert "ä" * 500 not in repr([getattr(rows["a", "metarag"], name) for name in ("_values",)])

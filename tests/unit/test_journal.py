"""Journals survive kills: whatever happens to the tail, complete records are kept."""

import os
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.journal import Journal, Records, read_journal

ROWS: tuple[dict[str, Any], ...] = (
    {"id": 1, "text": "plain"},
    {"id": 2, "text": "next line \u0085 separator \u2028 \u2029 feed \x0c \x1c end"},
    {"id": 3, "text": "two\nlines\r\n", "list": [1, {"a": None}]},
    {"id": 4, "text": "日本 🎉"},
)


def write(path: Path, rows: tuple[dict[str, Any], ...] = ROWS, *, durable: bool = False) -> bytes:
    journal = Journal(path, durable=durable)
    for row in rows:
        journal.append(row)
    journal.close()
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "rows.jsonl"


def test_a_record_is_written_before_the_journal_is_closed(path: Path) -> None:
    journal = Journal(path)
    journal.append(ROWS[0])
    assert read_journal(path).rows == ROWS[:1]
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        journal.append(ROWS[1])


def test_truncation_at_any_byte_keeps_the_complete_records(path: Path) -> None:
    whole = write(path)
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        complete = sum(end - 1 <= size for end in ends)  # the newline itself may be missing
        read = read_journal(path)
        assert read.rows == ROWS[:complete], size
        assert read.damaged == (0 if size in (0, *ends) or size + 1 in ends else 1), size


def test_appending_after_truncation_at_any_byte_loses_nothing_more(path: Path) -> None:
    whole = write(path, ROWS[:2])
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        write(path, ROWS[2:])
        complete = sum(end - 1 <= size for end in ends)
        assert read_journal(path).rows == (*ROWS[:complete], *ROWS[2:]), size


def test_a_durable_journal_syncs_every_record(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Records] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        seen.append(read_journal(path))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write(path, durable=True)
    assert [len(records.rows) for records in seen] == [1, 2, 3, 4]
    write(path, durable=False)
    assert len(seen) == 4

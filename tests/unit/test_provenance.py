"""What identifies the code and the files of a run, and who may work on it."""

from pathlib import Path

import pytest

from benchmarks.run import provenance
from benchmarks.run.folder import RunFolder
from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import Settings


def test_own_files_are_identified_by_their_contents(tmp_path: Path) -> None:
    def digest_of(text: str) -> str | None:
        (tmp_path / "own").mkdir(exist_ok=True)
        (tmp_path / "own" / "write.yaml").write_text(text)
        return provenance.own_files(Settings.load([f"PROMPTS_DIR={tmp_path / 'own'}"]))

    assert digest_of("instruction: One.") == digest_of("instruction: One.") != digest_of("instruction: Two.")
    assert provenance.own_files(Settings.load()) is None


def test_an_error_inside_the_run_is_not_reported_as_a_lock_conflict(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(OSError, match="of the run"), folder.locked():
        raise OSError("of the run")
    (folder.path / ".lock").unlink(missing_ok=True)
    (folder.path / ".lock").mkdir()
    with pytest.raises(InputError, match="cannot be locked"), folder.locked():
        raise AssertionError
    (folder.path / ".lock").rmdir()
    (folder.path / ".lock").write_bytes(b"certainly no database" * 100)
    with folder.locked(), pytest.raises(InputError, match="running in another"), RunFolder(folder.path).locked():
        raise AssertionError
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="needs its own folder"), RunFolder(tmp_path / "file").locked():
        raise AssertionError

"""Which files are found, and which are skipped."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from meta_agent_rag.ingestion.sources import SourceFiles, file_hash, find_files, is_gone, source_name

REASONS = {
    "out.txt": "it is a link to a target outside the folder",
    "outside": "it is a link to a target outside the folder",
    "nowhere.txt": "it is a broken link",
    "circle": "it is a link to a folder that is read anyway",
    "pipe": "it is not a regular file",
}


def names(found: SourceFiles) -> list[str]:
    return [Path(file.source).name for file in found.files]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with every kind of entry."""
    root = tmp_path / "docs"
    (root / "b" / "deep").mkdir(parents=True)
    (root / ".hidden").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in (root / "z.txt", root / "a.txt", root / "b" / "deep" / "c.txt", elsewhere / "secret.txt"):
        file.write_text(file.name)
    for file in (root / ".env", root / ".hidden" / "x.txt"):
        file.write_text("hidden")
    (root / "out.txt").symlink_to(elsewhere / "secret.txt")
    (root / "outside").symlink_to(elsewhere)
    (root / "nowhere.txt").symlink_to(root / "not-there")
    (root / "b" / "circle").symlink_to(root)
    (root / "within.txt").symlink_to(root / "b" / "deep" / "c.txt")
    os.mkfifo(root / "pipe")
    return root


def test_a_folder_is_walked_in_order_skipping_hidden_and_outside_entries(folder: Path) -> None:
    found = find_files([folder])
    assert names(found) == ["a.txt", "c.txt", "z.txt"]
    assert {Path(item.source).name: item.reason for item in found.passed_over} == REASONS
    broken = {Path(item.source).name for item in found.passed_over if item.broken}
    assert broken == {"out.txt", "outside", "nowhere.txt"}
    assert found.covers(str(folder / "b" / "deep" / "c.txt"))
    assert not found.covers(str(folder) + "-other/c.txt")


def test_a_file_far_down_is_found(tmp_path: Path) -> None:
    folders = [tmp_path]
    for _ in range(1200):
        folders.append(folders[-1] / "d")
        folders[-1].mkdir()
    (folders[-1] / "deep.txt").write_text("words")
    try:
        assert names(find_files([tmp_path])) == ["deep.txt"]
    finally:
        for folder in folders[:0:-1]:  # from the bottom, since removing a tree is recursive, too
            shutil.rmtree(folder)


def test_a_path_given_by_name_is_included_and_every_file_once(folder: Path) -> None:
    assert names(find_files([folder / ".hidden", folder / ".env"])) == ["x.txt", ".env"]
    assert names(find_files([folder / "out.txt"])) == ["secret.txt"]
    assert names(find_files([folder / "a.txt", folder, folder / "b"])) == ["a.txt", "c.txt", "z.txt"]
    assert find_files([folder / "a.txt"]).files[0].named


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_file_names_of_arbitrary_bytes_are_preserved(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/a\xffb \n.txt")
    Path(odd).write_text("words")
    (file,) = find_files([tmp_path]).files
    assert file.source == f"{tmp_path}/a\\xffb \n.txt"
    file.source.encode("utf-8")
    assert file_hash(file.path) == file_hash(Path(odd))


def test_a_file_is_gone_only_if_certainly_missing(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("x")
    assert not is_gone(str(tmp_path / "here"))
    assert is_gone(str(tmp_path / "there"))
    assert is_gone(str(tmp_path / "here" / "below"))
    assert not is_gone("a\0b")
    assert source_name(tmp_path) == str(tmp_path)

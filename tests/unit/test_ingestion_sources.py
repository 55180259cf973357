"""Which files are found, which are skipped, and what is to do with each."""

import os
import sys
from pathlib import Path

import pytest

from meta_agent_rag.ingestion.sources import SourceFiles, file_hash, find_files, is_gone, is_within

NOWHERE = Path("/no/such/folder")


def names(found: SourceFiles) -> list[str]:
    return [Path(file.source).name for file in found.files]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with every kind of entry."""
    root = tmp_path / "docs"
    for made in (root / "b" / "deep", root / ".hidden", tmp_path / "elsewhere"):
        made.mkdir(parents=True)
    secret = tmp_path / "elsewhere" / "secret.txt"
    hidden = (root / ".env", root / ".hidden" / "x.txt")
    for file in (root / "z.txt", root / "a.txt", root / "b" / "deep" / "c.txt", secret, *hidden):
        file.write_text(file.name)
    (root / "out.txt").symlink_to(secret)
    (root / "outside").symlink_to(tmp_path / "elsewhere")
    (root / "nowhere.txt").symlink_to(root / "not-there")
    (root / "b" / "circle").symlink_to(root)
    (root / "within.txt").symlink_to(root / "b" / "deep" / "c.txt")
    os.mkfifo(root / "pipe")
    return root


def test_a_folder_is_walked_skipping_hidden_and_outside_entries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "b")  # the working folder is a folder like others
    found = find_files([folder], without=folder / "data")
    assert sorted(names(found)) == ["a.txt", "c.txt", "z.txt"]
    assert {Path(item.source).name: (item.reason, item.broken) for item in found.passed_over} == {
        "out.txt": ("it is a link to a target outside the folder", True),
        "nowhere.txt": ("it cannot be opened (No such file or directory)", True),
        "pipe": ("it is not a regular file", False),
    }
    assert is_within(str(folder / "b" / "deep" / "c.txt"), str(folder))
    assert not is_within(str(folder) + "-other/c.txt", str(folder))


def test_a_path_given_by_name_is_included_and_every_file_once(folder: Path) -> None:
    assert names(find_files([folder / ".hidden", folder / ".env"], without=NOWHERE)) == ["x.txt", ".env"]
    assert names(find_files([folder / "out.txt"], without=NOWHERE)) == ["secret.txt"]
    assert sorted(names(find_files([folder / "a.txt", folder, folder / "b"], without=NOWHERE))) == [
        "a.txt",
        "c.txt",
        "z.txt",
    ]
    assert find_files([folder / "a.txt"], without=NOWHERE).files[0].named


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_file_names_of_arbitrary_bytes_are_preserved(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/a\xffb \n.txt")
    Path(odd).write_text("words")
    (file,) = find_files([tmp_path], without=NOWHERE).files
    assert file.source == f"{tmp_path}/a\\xffb \n.txt"
    assert file_hash(file.path) == file_hash(Path(odd))


def test_a_file_is_gone_only_if_certainly_missing(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("x")
    assert not is_gone(str(tmp_path / "here"))
    assert is_gone(str(tmp_path / "there"))
    assert is_gone(str(tmp_path / "here" / "below"))
    assert not is_gone("a\0b")

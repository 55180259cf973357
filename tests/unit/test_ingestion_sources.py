"""Which files are found, which are skipped, and what is to do with each."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from meta_agent_rag.ingestion.sources import (
    FoundFile,
    PlannedFile,
    SourceFiles,
    file_hash,
    find_files,
    is_gone,
    is_within,
    plan_for,
)
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord

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


# -- the plan


def planned(files: Mapping[str, str], documents: Mapping[str, str]) -> tuple[list[PlannedFile], list[str]]:
    """The plan for files with these contents in a folder, over a corpus that holds `documents`."""
    folder = "/no/such"
    found = tuple(FoundFile(path=Path(folder, name), source=f"{folder}/{name}", named=False) for name in files)
    records = [
        DocumentRecord(id=f"id-{name}", source=f"{folder}/{name}", title=name, kind="text", content_hash=content * 64)
        for name, content in documents.items()
    ]
    hashes = {f"{folder}/{name}": content * 64 for name, content in files.items()}
    steps, gone = plan_for(SourceFiles(files=found, paths=(folder,)), hashes, records)
    return steps, [document.id for document in gone]


@pytest.mark.parametrize(
    ("files", "documents", "steps", "gone"),
    [
        (
            {"a": "1", "b": "2", "c": "3"},
            {"a": "1", "b": "9"},
            [("unchanged", "id-a"), ("replaced", "id-b"), ("added", "c-333333333333")],
            [],
        ),
        ({"a": "1", "b": "1"}, {"a": "1", "b": "2"}, [("unchanged", "id-a"), ("skipped", "id-b")], []),
        ({"a": "2", "b": "1"}, {"a": "1", "b": "2"}, [("replaced", "id-a"), ("replaced", "id-b")], []),
        ({"new": "1"}, {"old": "1", "other": "2"}, [("moved", "id-old")], ["id-other"]),
        ({"a": "1", "b": "1"}, {}, [("added", "a-111111111111"), ("skipped", "")], []),
    ],
    ids=["new, changed, unchanged", "became a copy", "swapped", "moved", "copies"],
)
def test_what_is_to_do_with_each_file(
    files: Mapping[str, str], documents: Mapping[str, str], steps: list[tuple[str, str]], gone: list[str]
) -> None:
    found, lost = planned(files, documents)
    assert [(step.status, step.doc_id) for step in found] == steps
    assert lost == gone


def test_documents_outside_the_paths_are_neither_gone_nor_moved(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    elsewhere = DocumentRecord(id="e", source="/else/x", title="", kind="text", content_hash="2" * 64)
    there = DocumentRecord(id="k", source=f"{tmp_path}/kept", title="", kind="text", content_hash="1" * 64)
    file = FoundFile(path=Path("/no/such/a"), source="/no/such/a", named=False)
    found = SourceFiles(files=(file,), paths=("/no/such",))
    (step,), gone = plan_for(found, {"/no/such/a": "1" * 64}, [elsewhere, there])
    assert (gone, step.same_as) == ([], f"{tmp_path}/kept")

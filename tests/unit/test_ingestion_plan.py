"""The plan: what to do with each file."""

from collections.abc import Mapping
from pathlib import Path

from meta_agent_rag.ingestion.sources import FoundFile, IngestPlan, SourceFiles, plan_for
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord


def planned(files: Mapping[str, str], documents: Mapping[str, str], folder: str = "/no/such") -> IngestPlan:
    """The plan for files with these contents in a folder, over a corpus that holds `documents`."""
    found = tuple(FoundFile(path=Path(folder, name), source=f"{folder}/{name}", named=False) for name in files)
    hashes = {f"{folder}/{name}": content * 64 for name, content in files.items()}
    records = [
        DocumentRecord(id=f"id-{name}", source=f"{folder}/{name}", title=name, kind="text", content_hash=content * 64)
        for name, content in documents.items()
    ]
    return plan_for(SourceFiles(files=found, passed_over=(), folders=(folder,)), hashes, records)


def steps(plan: IngestPlan) -> dict[str, tuple[str, str]]:
    return {step.file.path.name: (step.status, step.doc_id) for step in plan.steps}


def test_new_changed_and_unchanged_files() -> None:
    plan = planned({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9"})
    assert steps(plan) == {
        "a": ("unchanged", "id-a"), "b": ("replaced", "id-b"), "c": ("added", "c-333333333333"),
    }  # fmt: skip
    assert (plan.gone, plan.copies) == ((), ())


def test_a_file_that_became_a_copy_loses_its_document() -> None:
    plan = planned({"a": "1", "b": "1"}, {"a": "1", "b": "2"})
    assert [step.same_as for step in plan.steps] == [None, "/no/such/a"]
    assert [document.id for document in plan.copies] == ["id-b"]
    unread = planned({"a": "1", "b": "1"}, {"b": "2"})
    assert [step.same_as for step in unread.steps] == [None, "/no/such/a"]
    assert unread.copies == (), "only after the other is in the corpus"


def test_a_moved_file_keeps_its_document() -> None:
    plan = planned({"new": "1"}, {"old": "1", "other": "2"})
    assert steps(plan) == {"new": ("moved", "id-old")}
    assert [document.id for document in plan.gone] == ["id-other"]


def test_documents_outside_the_paths_are_neither_gone_nor_moved(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    elsewhere = DocumentRecord(id="e", source="/else/x", title="", kind="text", content_hash="2" * 64)
    there = DocumentRecord(id="k", source=f"{tmp_path}/kept", title="", kind="text", content_hash="1" * 64)
    file = FoundFile(path=Path("/no/such/a"), source="/no/such/a", named=False)
    found = SourceFiles(files=(file,), passed_over=(), folders=("/no/such",))
    plan = plan_for(found, {"/no/such/a": "1" * 64}, [elsewhere, there])
    assert plan.gone == ()
    assert plan.steps[0].same_as == f"{tmp_path}/kept"


def test_a_file_without_a_hash_has_no_step_and_ids_are_unique() -> None:
    found = tuple(FoundFile(path=Path("/x", name), source=f"/x/{name}", named=False) for name in ("a.txt", "b.txt"))
    taken = DocumentRecord(id="a-111111111111", source="/else/a", title="", kind="text", content_hash="9" * 64)
    plan = plan_for(SourceFiles(files=found, passed_over=(), folders=()), {"/x/a.txt": "1" * 64}, [taken])
    assert [(step.file.source, step.doc_id) for step in plan.steps] == [("/x/a.txt", "a-111111111111-2")]

"""Files of passages are read row by row: any size, a bounded amount of memory, every guarantee of other files."""

import gzip
import hashlib
import tracemalloc
from pathlib import Path

import pytest

from meta_agent_rag.ingestion.document import ReadFile, Refused
from meta_agent_rag.ingestion.pipeline import ingest
from meta_agent_rag.ingestion.rows import is_rows, read_rows
from meta_agent_rag.ingestion.sources import FileOutcome
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.corpus import open_corpus, read_documents
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.settings import Settings
from tests.files import rows

ROWS = 600
LIMIT_MB = 0.01
"""Far less than the files of these tests."""


def lines(numbers: range, words: str = "boats") -> bytes:
    """One row for each number."""
    return rows(*({"id": f"p{n}", "title": f"Note {n}", "text": f"Town {n} has {words}."} for n in numbers))


def read(folder: Path, name: str, content: bytes) -> ReadFile:
    (folder / name).write_bytes(content)
    return read_rows(folder / name, 1024 * 1024)


async def ingested(file: Path) -> tuple[FileOutcome, int]:
    """The outcome, and the number of passages that were encoded."""
    settings = Settings.load(encoder="hash-64", ingest_file_mb=LIMIT_MB)
    report = await ingest(settings, (file,), "notes", encoder=AsyncEncoder(HashEncoder()))
    (outcome,) = report.outcomes
    return outcome, report.encoded


async def stored() -> list[str]:
    """The ids that are published, which must agree with the document."""
    settings = Settings.load(encoder="hash-64")
    async with open_corpus(settings, "notes", "hash-64", 64) as corpus:
        found = [passage.id for part in corpus.catalogue.parts() for passage in part.passages]
        assert corpus.manifest.passages == len(found)
    (document,) = read_documents(settings.marag_data_dir, "notes")
    assert document.passages == len(found)
    return sorted(found, key=lambda id_: int(id_[1:]))


def test_passages_are_read_unchanged_as_often_as_wanted(tmp_path: Path) -> None:
    content = rows({"id": "x", "title": "T", "text": "One\ud800."}, {"_id": 7, "text": "Two\u0085three", "extra": 1})
    for name, packed in (
        ("a.jsonl", content),
        ("a.jsonl.gz", gzip.compress(content)),
        ("a.ndjson", b"\xef\xbb\xbf" + content),
    ):
        found = read(tmp_path, name, packed)
        assert is_rows(tmp_path / name)
        assert (found.title, found.content_hash) == ("a", hashlib.sha256(packed).hexdigest())
        for _ in range(2):
            assert [(row.id, row.doc_id, row.title, row.text) for row in found.passages] == [
                ("x", "x", "T", "One\ufffd."), ("7", "7", "", "Two\nthree"),
            ]  # fmt: skip


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (b'{"id": "2", "text"', "line 2 is not"),
        (b'{"text": "no id"}', "id in line 2"),
        (b'{"id": "", "text": "x"}', "the id in line 2 is not a text of 1 to 512 characters"),
        (b'{"id": "1", "text": "again"}', "line 2 repeats the id '1'"),
        (b"[" * 100_000, "line 2 is not"),
    ],
)
def test_a_malformed_row_is_reported(tmp_path: Path, broken: bytes, said: str) -> None:
    with pytest.raises(Refused, match=said) as raised:
        read(tmp_path, "a.jsonl", rows({"id": "1", "text": "good"}) + broken + b"\n")
    assert raised.value.kind == "unreadable"


@pytest.mark.parametrize(
    ("name", "content", "kind", "said"),
    [
        ("a.jsonl.gz", gzip.compress(b'{"id": "1", "text": "' + b"x" * 5_000_000), "limit", "unpacks to more than 1"),
        ("a.jsonl", lines(range(1)) + lines(range(1, 2), "x" * 2_000_000), "limit", "a line of more than 1 MB"),
        ("a.jsonl.gz", gzip.compress(rows({"id": "1", "text": "x" * 1000}))[:-9], "unreadable", "damaged"),
        ("a.jsonl.gz", gzip.compress(b"just words"), "unreadable", "line 1 is not"),
        ("a.jsonl", b'{"id": "1", "text": " "}\n{"id": "2", "text": "..."}\n', "no_text", "no text"),
    ],
    ids=["bomb", "line", "damaged", "words", "no text"],
)
def test_an_unusable_file_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes, kind: str, said: str
) -> None:
    with pytest.raises(Refused, match=said) as raised:
        read(tmp_path, name, content)
    assert raised.value.kind == kind


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(range(4_000), "boats " * 100))
    tracemalloc.start()
    try:
        found = read_rows(tmp_path / "a.jsonl", 1024 * 1024)
        assert sum(len(passage.text) for passage in found.passages) > 2_000_000
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - held < 1_500_000
    assert held < 500_000


async def test_a_large_file_is_ingested_again_by_its_differences(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(lines(range(ROWS)))
    assert file.stat().st_size > 2 * LIMIT_MB * 1024 * 1024
    outcome, encoded = await ingested(file)
    assert (outcome.status, outcome.passages, encoded) == ("added", ROWS, ROWS)
    outcome, encoded = await ingested(file)
    assert (outcome.status, outcome.passages, encoded) == ("unchanged", ROWS, 0)
    file.write_bytes(lines(range(10), "ships") + lines(range(10, ROWS - 100)) + lines(range(ROWS, ROWS + 5)))
    outcome, encoded = await ingested(file)
    assert (outcome.status, encoded) == ("replaced", 15)
    assert await stored() == [f"p{n}" for n in [*range(ROWS - 100), *range(ROWS, ROWS + 5)]]

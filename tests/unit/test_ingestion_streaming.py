"""Files of passages are read row by row: any size, a bounded amount of memory, every guarantee of other files."""

import asyncio
import gzip
import hashlib
import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from meta_agent_rag.ingestion import cluster, spool
from meta_agent_rag.ingestion.child import Job, shares
from meta_agent_rag.ingestion.chunkers import ChunkingOptions
from meta_agent_rag.ingestion.document import Refused
from meta_agent_rag.ingestion.isolation import IsolatedReader, ReadFile
from meta_agent_rag.ingestion.pipeline import ingest
from meta_agent_rag.ingestion.report import FileOutcome
from meta_agent_rag.ingestion.spool import IN_MEMORY, Spool, collected
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.corpus import open_corpus, read_documents
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings

ROWS = IN_MEMORY + 1500
LIMIT_MB = 0.05
"""Far less than the files of these tests."""
JOB = Job(seconds=60, memory_mb=1024, file_mb=LIMIT_MB, chunking=ChunkingOptions())


def lines(numbers: Iterator[int] | range, words: str = "boats") -> bytes:
    """One row for each number."""
    return b"".join(
        json.dumps({"id": f"p{n}", "title": f"Note {n}", "text": f"Town {n} has {words}."}).encode() + b"\n"
        for n in numbers
    )


async def read(path: Path, job: Job = JOB) -> ReadFile:
    reader = IsolatedReader(job)
    try:
        return await reader.read(path, "d")
    finally:
        reader.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def write(file: Path, content: bytes) -> None:
    file.write_bytes(content)


async def ingested(file: Path, *, file_mb: float = LIMIT_MB) -> tuple[FileOutcome, int]:
    """The outcome, and the number of passages that were encoded."""
    settings = Settings.load(encoder="hash-64", ingest_file_mb=file_mb)
    report = await ingest(settings, (file,), "notes", encoder=AsyncEncoder(HashEncoder()))
    (outcome,) = report.outcomes
    return outcome, report.encoded


async def test_a_file_above_the_limit_is_read_row_by_row(file: Path) -> None:
    content = b"\xef\xbb\xbf" + lines(range(ROWS))
    assert len(content) > 5 * LIMIT_MB * 1024 * 1024
    write(file, content)
    found = await read(file)
    assert (found.title, found.kind, found.content_hash) == ("rows", "passages", hashlib.sha256(content).hexdigest())
    assert isinstance(found.passages, Spool)
    assert [passage.id for passage in found.passages] == [f"p{n}" for n in range(ROWS)]
    first = next(iter(found.passages))
    assert (first.doc_id, first.title, first.text) == ("p0", "Note 0", "Town 0 has boats.")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"{torn\n", f"line {ROWS + 1} is not a JSON object with id, title and text"),
        (b'{"id": "p3", "text": "Again."}\n', f"line {ROWS + 1} repeats the id 'p3'"),
        (b'{"id": "", "text": "No id."}\n', f"the id in line {ROWS + 1} is not a text of 1 to 512 characters"),
    ],
)
async def test_a_bad_line_is_reported_with_its_number_and_the_earlier_version_is_kept(
    file: Path, bad: bytes, reason: str
) -> None:
    write(file, lines(range(ROWS)))
    assert (await ingested(file))[0].status == "added"
    write(file, lines(range(ROWS)) + bad)
    outcome, encoded = await ingested(file)
    assert (outcome.status, outcome.reason) == ("skipped", f"{reason}; its earlier version is kept")
    assert (outcome.broken, encoded) == (True, 0)
    assert await stored(Settings.load(encoder="hash-64")) == [f"p{n}" for n in range(ROWS)]


async def stored(settings: Settings) -> list[str]:
    """The ids that are published, which must agree with the document."""
    async with open_corpus(settings, "notes", "hash-64", 64) as corpus:
        found = [passage.id for passages, _ in corpus.catalogue.everything(1000) for passage in passages]
        assert corpus.manifest.passages == len(found)
    (document,) = read_documents(settings.marag_data_dir, "notes")
    assert document.passages == len(found)
    return sorted(found, key=lambda id_: int(id_[1:]))


async def test_a_large_file_is_ingested_again_by_its_differences(file: Path) -> None:
    write(file, lines(range(ROWS)))
    outcome, encoded = await ingested(file)
    assert (outcome.status, outcome.passages, encoded) == ("added", ROWS, ROWS)
    outcome, encoded = await ingested(file)
    assert (outcome.status, outcome.passages, encoded) == ("unchanged", ROWS, 0)
    write(file, lines(range(10), "ships") + lines(range(10, ROWS - 100)) + lines(range(ROWS, ROWS + 5)))
    outcome, encoded = await ingested(file)
    assert (outcome.status, encoded) == ("replaced", 15)
    expected = [*range(ROWS - 100), *range(ROWS, ROWS + 5)]
    assert await stored(Settings.load(encoder="hash-64")) == [f"p{n}" for n in expected]


async def test_a_gzipped_file_is_limited_by_its_unpacked_size(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl.gz"
    write(file, gzip.compress(lines(range(1000))))
    assert len((await read(file)).passages) == 1000
    write(file, gzip.compress(lines(range(ROWS))))
    with pytest.raises(Refused, match=r"unpacks to more than 0 MB"):
        await read(file)


async def test_a_line_is_limited(file: Path) -> None:
    write(file, lines(range(1)) + lines(range(1, 2), "x" * 300_000))
    with pytest.raises(Refused, match="has a line of more than"):
        await read(file)


@pytest.mark.parametrize("name", ["rows.jsonl", "text.txt"])
async def test_other_files_keep_their_limit(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    wide = lines(range(1000)).decode().encode("utf-16")
    write(file, wide if name == "rows.jsonl" else b"Words of a long text. " * 5000)
    outcome, _ = await ingested(file)
    assert outcome.refusal == "limit"
    with pytest.raises(Refused, match=r"larger than 0.05 MB"):
        await read(file)


async def test_a_file_without_text_is_refused(file: Path) -> None:
    write(file, b'{"id": "1", "text": " "}\n{"id": "2", "text": "..."}\n')
    with pytest.raises(Refused, match="no text"):
        await read(file)


def test_limits_of_time_grow_with_the_file(file: Path) -> None:
    write(file, b"x" * int(2.5 * LIMIT_MB * 1024 * 1024))
    assert shares(str(file), JOB) == 3
    assert shares(str(file.with_name("missing")), JOB) == 1


def test_a_node_of_a_cluster_reads_a_large_file(file: Path) -> None:
    write(file, lines(range(ROWS)))
    found = pickle.loads(pickle.dumps(cluster.read_on_node(JOB.to_json(), str(file), "d")))
    assert isinstance(found, ReadFile)
    assert [passage.id for passage in found.passages] == [f"p{n}" for n in range(ROWS)]
    assert len(found.passages) == ROWS
    cluster._reader(JOB.to_json()).close()  # a node keeps its process
    cluster._reader.cache_clear()


def test_few_passages_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", 3)
    passages = [Passage(id=f"p{n}", doc_id="d", title="\ud800", text="Ü\n") for n in range(4)]
    assert collected(iter(passages[:3])) == tuple(passages[:3])
    spooled = collected(iter(passages))
    assert isinstance(spooled, Spool)
    assert list(spooled) == list(spooled) == passages
    assert passages[3] in spooled


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
def test_the_reader_needs_no_more_memory_for_a_larger_file(file: Path) -> None:
    """40 MB of rows, read within 48 MB: about 40 of them are the process itself."""
    with file.open("wb") as out:
        for start in range(0, 40_000, 1000):
            out.write(lines(range(start, start + 1000), "boats " * 160))
    job = Job(seconds=60, memory_mb=48, file_mb=8, chunking=ChunkingOptions())
    assert len(asyncio.run(read(file, job)).passages) == 40_000

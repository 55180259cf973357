"""Ingesting files into a corpus, with the real embedded stores."""

from pathlib import Path

import pytest

from meta_agent_rag.errors import InputError
from meta_agent_rag.ingestion.pipeline import ingest
from meta_agent_rag.ingestion.sources import FileOutcome, IngestReport
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.corpus import list_corpora, open_corpus, read_documents
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.settings import Settings
from tests.files import pdf, rows


class Bench:
    """A folder of files and the corpus built from it."""

    def __init__(self, root: Path) -> None:
        self.docs = root / "docs"
        self.docs.mkdir()
        self.settings = Settings.load(encoder="hash-64")
        self.encoder = HashEncoder()

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.docs / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    async def ingest(
        self, *paths: Path, prune: bool = False, rebuild: bool = False, settings: Settings | None = None
    ) -> IngestReport:
        return await ingest(
            settings or self.settings, paths or (self.docs,), "notes", encoder=AsyncEncoder(self.encoder), prune=prune,
            rebuild=rebuild,
        )  # fmt: skip

    def documents(self) -> dict[str, int]:
        """Passages of each document, by the name of its file."""
        found = read_documents(self.settings.marag_data_dir, "notes")
        return {Path(document.source).name: document.passages for document in found}

    async def search(self, words: str) -> list[str]:
        """Texts of the passages that contain these words."""
        async with open_corpus(self.settings, "notes", self.encoder.name, self.encoder.dimension) as corpus:
            return [found.passage.text for found in await (await corpus.view()).matching(words, 5)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def outcomes_by_file(report: IngestReport) -> dict[str, str]:
    return {Path(outcome.source).name: outcome.status for outcome in report.outcomes}


def outcome(report: IngestReport, name: str) -> FileOutcome:
    return next(found for found in report.outcomes if Path(found.source).name == name)


async def test_broken_files_neither_stop_the_run_nor_lose_passages(bench: Bench) -> None:
    bench.write("a.pdf", pdf([["Lava is molten rock."]]))
    bench.write("b.txt", "Clouds are droplets.")
    await bench.ingest()
    for name in ("a.pdf", "copy.pdf"):
        bench.write(name, b"%PDF-1.7\ncut off")
    bench.write("c.pdf", b"MZ" + bytes(1000))
    bench.write("d.txt", "Fog is a low cloud.")
    bench.write("e.png", b"\x89PNG\r\n\x1a\n" + bytes(1000))
    report = await bench.ingest()
    assert outcomes_by_file(report) == {
        "a.pdf": "skipped",
        "b.txt": "unchanged",
        "c.pdf": "skipped",
        "copy.pdf": "skipped",
        "d.txt": "added",
        "e.png": "skipped",
    }
    assert outcome(report, "a.pdf").refusal == outcome(report, "copy.pdf").refusal == "unreadable"
    assert str(outcome(report, "a.pdf").reason).endswith("its earlier version is kept")
    broken = {Path(one.source).name for one in report.outcomes if one.broken}
    assert broken == {"a.pdf", "copy.pdf", "c.pdf"}, "e.png claims no known format"
    assert await bench.search("lava")
    large = await bench.ingest(settings=Settings.load(encoder="hash-64", ingest_file_mb=0.0001))
    assert outcome(large, "c.pdf").refusal == "limit"
    assert bench.documents() == {"a.pdf": 1, "b.txt": 1, "d.txt": 1}
    assert (await bench.ingest(bench.docs / "e.png")).failed, "a file given by name is meant to be read"


async def test_removed_files_are_dropped_only_with_prune_and_below_the_paths(bench: Bench, tmp_path: Path) -> None:
    kept, gone = bench.write("a.txt", "Lava is molten rock."), bench.write("sub/b.txt", "Clouds are droplets.")
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("Fog is a low cloud.")
    await bench.ingest(bench.docs, elsewhere)
    gone.unlink()
    elsewhere.unlink()
    assert outcomes_by_file(await bench.ingest()) == {"a.txt": "unchanged", "b.txt": "gone"}
    assert len(bench.documents()) == 3
    assert outcomes_by_file(await bench.ingest(prune=True)) == {"a.txt": "unchanged", "b.txt": "pruned"}
    assert bench.documents() == {"a.txt": 1, "elsewhere.txt": 1}
    kept.unlink()
    assert outcomes_by_file(await bench.ingest(prune=True)) == {"a.txt": "pruned"}
    assert outcomes_by_file(await bench.ingest(elsewhere, prune=True)) == {"elsewhere.txt": "pruned"}
    with pytest.raises(InputError, match="elsewhere"):
        await bench.ingest(elsewhere, prune=True)


async def test_copies_are_ingested_once_and_moves_are_followed(bench: Bench, tmp_path: Path) -> None:
    original = bench.write("a.txt", "Lava is molten rock.")
    bench.write("b.txt", "Clouds are droplets.")
    await bench.ingest()
    bench.write("b.txt", "Lava is molten rock.")
    report = await bench.ingest()
    assert outcomes_by_file(report) == {"a.txt": "unchanged", "b.txt": "skipped"}
    assert outcome(report, "b.txt").reason == f"it has the same content as {str(original)!r}"
    assert not report.failed
    assert bench.documents() == {"a.txt": 1}
    original.unlink()
    assert outcomes_by_file(await bench.ingest(prune=True)) == {"b.txt": "moved"}
    assert bench.documents() == {"b.txt": 1}
    other = bench.write("c.txt", "Fog is a low cloud.")
    await bench.ingest()
    bench.write("b.txt", "Fog is a low cloud.")
    bench.write("c.txt", "Lava is molten rock.")
    assert outcomes_by_file(await bench.ingest()) == {"b.txt": "replaced", "c.txt": "replaced"}, "two files swapped"
    (elsewhere := tmp_path / "elsewhere.txt").write_bytes(other.read_bytes())
    report = await bench.ingest(elsewhere)
    assert outcome(report, "elsewhere.txt").reason == f"it has the same content as {str(other)!r}"


async def test_passage_ids_belong_to_one_file(bench: Bench) -> None:
    bench.write("a.jsonl", rows({"id": "1", "title": "Lava", "text": "Molten rock."}))
    bench.write("b.jsonl", rows({"id": "2", "text": "Droplets."}, {"id": "1", "text": "Another."}))
    report = await bench.ingest()
    assert outcomes_by_file(report) == {"a.jsonl": "added", "b.jsonl": "skipped"}
    assert "passage id '1'" in str(outcome(report, "b.jsonl").reason)
    assert report.failed
    assert bench.documents() == {"a.jsonl": 1}


async def test_a_rebuild_without_files_keeps_the_corpus(bench: Bench) -> None:
    path = bench.write("a.txt", "Lava is molten rock.")
    await bench.ingest()
    path.write_bytes(b"")
    with pytest.raises(InputError, match="None of 1 files could be read"):
        await bench.ingest(rebuild=True)
    assert await bench.search("lava")


async def test_caller_errors_are_reported_before_anything_is_created(bench: Bench) -> None:
    with pytest.raises(InputError, match="No files to read"):
        await bench.ingest()
    bench.write("a.txt", "Lava.")
    with pytest.raises(InputError, match="nope"):
        await bench.ingest(bench.docs / "nope")
    with pytest.raises(InputError, match="'sample'"):
        await ingest(bench.settings, [bench.docs], "sample", encoder=AsyncEncoder(bench.encoder))
    assert list_corpora(bench.settings.marag_data_dir) == ()


async def test_progress_counts_passages_and_the_data_folder_is_left_out(bench: Bench) -> None:
    for number in range(5):
        bench.write(f"{number}.txt", f"Lava number {number} is molten rock.")
    seen: list[tuple[int, int]] = []
    settings = Settings.load(encoder="hash-64", marag_data_dir=bench.docs / "data")
    for status in ("added", "unchanged"):
        report = await ingest(
            settings, [bench.docs], "notes", encoder=AsyncEncoder(bench.encoder),
            on_progress=lambda done, wanted: seen.append((done, wanted)),
        )  # fmt: skip
        assert report.counts == {status: 5}
    assert seen[-1] == (5, 5)

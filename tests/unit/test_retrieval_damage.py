"""Damaged files of an embedded corpus: indexes are rebuilt, and losses are reported."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.errors import CorpusError, DamagedIndexError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import Catalogue, DocumentRecord
from meta_agent_rag.retrieval.corpus.corpus import open_corpus
from meta_agent_rag.retrieval.corpus.editing import edit_corpus, ensure_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.stores.damage import unreadable
from meta_agent_rag.settings import Settings

ENCODER = AsyncEncoder(HashEncoder())
COUNT = 40
PASSAGES = [
    Passage(id=f"p{number}", doc_id="d", title=f"Title {number}", text=f"fact number {number}")
    for number in range(COUNT)
]
TORN = [
    ("dense", "**/mutable_id_tracker.mappings", 0.5),  # loads as if half of the passages had never existed
    ("dense", "**/mutable_id_tracker.versions", 0.9),
    ("dense", "**/is_null/status.dat", 0.0),  # a panic
    ("dense", "**/segment.json", 0.5),
    ("dense", "edge_config.json", 0.0),
    ("lexical", "meta.json", 0.5),
    ("lexical", "*.store", 0.5),
    ("lexical", "*.term", 0.0),
]


async def build(home: Path) -> Path:
    await ensure_corpus(Settings.load(marag_data_dir=home), "facts", PASSAGES, ENCODER)
    return home / "corpora" / "facts"


async def found(home: Path) -> list[Any]:
    async with open_corpus(Settings.load(marag_data_dir=home), "facts", "hash-64", 64) as corpus:
        vector = (await ENCODER.queries([PASSAGES[7].searchable()]))[0]
        return [
            [one.passage for one in await corpus.dense.search(vector, COUNT)][:1],
            [one.passage for one in await corpus.lexical.search("number", COUNT)],
            sorted([one.id async for one in corpus.dense.scan()]),
            sorted([one.id async for one in corpus.lexical.scan()]),
        ]


def tear(file: Path, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])


def unsealed(folder: Path) -> None:
    """Indexes without seals, as after a kill."""
    for seal in folder.glob("*/seal.json"):
        seal.unlink()


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "after a kill"])
@pytest.mark.parametrize("torn", TORN, ids=lambda torn: f"{torn[0]} {torn[1]}".replace("*", ""))
async def test_a_torn_index_is_rebuilt(
    tmp_path: Path, torn: tuple[str, str, float], sealed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    kind, pattern, share = torn
    folder = await build(tmp_path)
    whole = await found(tmp_path)
    if not sealed:
        unsealed(folder)
    files = sorted((folder / kind).glob(pattern))
    assert files
    for file in files:
        tear(file, share)
    assert await found(tmp_path) == whole
    assert f"The {kind} index of the corpus" in caplog.text
    caplog.clear()
    assert await found(tmp_path) == whole
    assert not caplog.text


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("dense", "**/vector_storage*/**/*.dat"),
        ("lexical", "*.fieldnorm"),
        ("lexical", "*.idx"),
        ("lexical", "*.store"),
    ],
)
async def test_any_overwritten_byte_is_detected(
    tmp_path: Path, kind: str, pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = await build(tmp_path)
    whole = await found(tmp_path)
    files = [file for file in sorted((folder / kind).glob(pattern)) if file.read_bytes().rstrip(b"\0")]
    assert files
    for file in files:
        content = bytearray(file.read_bytes())
        content[len(content.rstrip(b"\0")) // 2] ^= 0xFF
        file.write_bytes(content)
        caplog.clear()
        assert await found(tmp_path) == whole
        assert f"The {kind} index of the corpus" in caplog.text
        if not file.exists():  # rebuilt under other names
            break


async def test_a_copied_index_is_not_rebuilt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await build(tmp_path / "first")
    whole = await found(tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "second", copy_function=shutil.copyfile)
    for _ in range(3):
        assert await found(tmp_path / "second") == whole
    assert not caplog.text


@pytest.mark.parametrize("seal", ["", "{", "[]", '{"meta.json": [1]}', '{"meta.json": null}'])
async def test_a_damaged_seal_is_treated_as_missing(
    tmp_path: Path, seal: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = await build(tmp_path)
    whole = await found(tmp_path)
    (folder / "lexical" / "seal.json").write_text(seal)
    assert await found(tmp_path) == whole
    assert not caplog.text


@pytest.mark.parametrize("bytes_left", [0, 1, 4096])
async def test_a_torn_catalogue_leaves_the_indexes_untouched(tmp_path: Path, bytes_left: int) -> None:
    folder = await build(tmp_path)
    file = folder / "catalogue.sqlite"
    file.write_bytes(file.read_bytes()[:bytes_left])
    before = sorted(path for path in folder.rglob("*") if "lexical" in path.parts)
    for _ in range(2):
        with pytest.raises(
            CorpusError, match=r"catalogue.*is missing.*--rebuild|catalogue.*cannot be used.*ingest it again"
        ):
            await found(tmp_path)
    assert sorted(path for path in folder.rglob("*") if "lexical" in path.parts) == before


async def test_rows_lost_from_the_catalogue_are_reported_and_still_found(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = await build(tmp_path)
    whole = await found(tmp_path)
    with sqlite3.connect(folder / "catalogue.sqlite") as connection:
        connection.execute("DELETE FROM passages WHERE id IN ('p3', 'p4')")
    connection.close()
    assert await found(tmp_path) == whole
    assert f"has {COUNT - 2} passages instead of {COUNT}" in caplog.text


def half_lost(folder: Path, part: str) -> None:
    (file,) = (folder / "dense").glob(f"segments/*/**/{part}")
    content = file.read_bytes()
    half = len(content.rstrip(b"\0")) // 2
    file.write_bytes(content[:half] + bytes(len(content) - half))


async def test_passages_missing_from_a_dense_index_are_reported(tmp_path: Path) -> None:
    folder = await build(tmp_path)
    unsealed(folder)
    await found(tmp_path)  # without a seal the index itself is opened, and its log is rewritten
    unsealed(folder)
    half_lost(folder, "payload_storage/tracker.dat")
    with pytest.raises(DamagedIndexError, match="a passage has no 'id'"):
        await found(tmp_path)


@pytest.mark.parametrize("part", ["deleted/flags_a.dat", "deleted/status.dat"])
async def test_a_dense_index_without_its_flags_returns_the_same_results(tmp_path: Path, part: str) -> None:
    folder = await build(tmp_path)
    whole = await found(tmp_path)
    unsealed(folder)
    half_lost(folder, part)
    assert await found(tmp_path) == whole


async def test_an_interrupted_edit_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await build(tmp_path)
    settings = Settings.load(marag_data_dir=tmp_path)
    more = Passage(id="more", doc_id="e", title="More", text="fact number more")
    record = DocumentRecord(id="e", source="e", title="More", kind="text", content_hash="e")

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    async def edit() -> None:
        async with edit_corpus(settings, "facts", ENCODER, chunker="none") as editor:
            await editor.put(record, [more])

    with monkeypatch.context() as patched:
        patched.setattr(Catalogue, "published", cut)
        with pytest.raises(KeyboardInterrupt):
            await edit()
    ids = (await found(tmp_path))[2]
    assert ids == sorted([*(one.id for one in PASSAGES), "more"])
    assert not caplog.text


async def test_an_index_that_cannot_be_rebuilt_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = await build(tmp_path)
    tear(folder / "lexical" / "meta.json", 0.5)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as on a read-only disk
    with pytest.raises(DamagedIndexError, match="remove that folder to have it rebuilt"):
        await found(tmp_path)


@pytest.mark.parametrize(
    ("said", "remade"),
    [
        ("EOF while parsing a value at line 1 column 0", True),
        ("No such file or directory (os error 2)", True),
        ("Permission denied (os error 13)", False),
        ("Too many open files (os error 24)", False),
    ],
)
def test_an_operating_system_error_is_not_damage(said: str, remade: bool) -> None:
    error = unreadable(Path("dense"), said)
    assert isinstance(error, DamagedIndexError) is remade
    assert said in str(error)


def test_a_transaction_that_fails_to_commit_is_rolled_back(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "catalogue.sqlite", 64)
    record = DocumentRecord(id="d", source="d", title="D", kind="text", content_hash="d")
    catalogue._connection.execute("PRAGMA foreign_keys = ON")
    catalogue._connection.executescript(
        "CREATE TABLE parents (id TEXT PRIMARY KEY);"
        "CREATE TABLE children (id TEXT REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED);"
        "CREATE TRIGGER orphan AFTER INSERT ON incoming_documents WHEN NEW.title = 'D' "
        "BEGIN INSERT INTO children VALUES ('nobody'); END;"
    )
    with pytest.raises(CorpusError, match="FOREIGN KEY"):  # a deferred check fails in COMMIT, as a full disk does
        catalogue.stage(record, PASSAGES[:1])
    assert catalogue.stage(DocumentRecord(id="e", source="e", title="E", kind="text", content_hash="e"), []) == 0
    assert catalogue.is_empty()
    catalogue.close()

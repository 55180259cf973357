"""A corpus on disk: complete or absent, and foreign folders untouched."""

import os
from pathlib import Path

import pytest

from meta_agent_rag.errors import CorpusError, InputError, SettingsError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.corpus import drop_corpus, list_corpora, open_corpus, read_documents, stores_for
from meta_agent_rag.retrieval.corpus.editing import edit_corpus, ensure_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings

ENCODER = AsyncEncoder(HashEncoder())


def passages(count: int = 3, word: str = "fact") -> list[Passage]:
    return [
        Passage(id=f"p{number}", doc_id="d", title=f"Title {number}", text=f"{word} number {number}")
        for number in range(count)
    ]


def at(data_dir: Path) -> Settings:
    return Settings.load(marag_data_dir=data_dir)


async def first_title(data_dir: Path, name: str, text: str) -> str:
    async with open_corpus(at(data_dir), name, "hash-64", 64) as corpus:
        return (await (await corpus.view()).matching(text, 1))[0].passage.title


def visible(data_dir: Path) -> list[str]:
    """The entries of the folder besides locks."""
    return sorted(path.name for path in (data_dir / "corpora").iterdir() if path.suffix != ".lock")


async def test_a_corpus_is_built_and_opened(tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    manifest = await ensure_corpus(
        at(tmp_path), "facts", passages(1000), ENCODER, on_progress=lambda *step: progress.append(step)
    )
    assert progress == [(512, 1000), (1000, 1000)]
    assert visible(tmp_path) == ["facts"]
    assert (manifest.encoder, manifest.passages, manifest.documents) == ("hash-64", 1000, 1)
    assert list_corpora(tmp_path) == (manifest,)
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        assert corpus.manifest == manifest
        vector = (await ENCODER.queries([passages(1000)[7].searchable()]))[0]
        near = await (await corpus.view()).nearest(vector, 20)
        assert "p7" in [one.passage.id for one in near if one.dense == pytest.approx(1.0, abs=2e-4)]
        assert len(await (await corpus.view()).matching("fact", 2000)) == 1000


def crash(done: int, total: int) -> None:
    raise KeyError(done)


async def test_an_error_while_replacing_keeps_the_earlier_passages(tmp_path: Path) -> None:
    manifest = await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER)
    with pytest.raises(KeyError):
        await ensure_corpus(at(tmp_path), "facts", passages(word="tale"), ENCODER, on_progress=crash)
    assert list_corpora(tmp_path) == (manifest,)
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        assert corpus.manifest == manifest
        assert len(await (await corpus.view()).matching("fact", 9)) == 3
        assert await (await corpus.view()).matching("tale", 9) == []


async def test_a_corpus_of_other_passages_or_another_encoder_is_replaced(tmp_path: Path) -> None:
    await ensure_corpus(at(tmp_path), "facts", passages(), AsyncEncoder(HashEncoder(32)))
    manifest = await ensure_corpus(at(tmp_path), "facts", passages(5, "tale"), ENCODER)
    assert manifest.passages == 5
    assert await first_title(tmp_path, "facts", "tale 4") == "Title 4"
    assert visible(tmp_path) == ["facts"]


@pytest.mark.parametrize("content", [None, "{}", "not json", '{"created_by": "someone else"}', "\ud800"])
async def test_a_foreign_folder_is_never_modified(content: str | None, tmp_path: Path) -> None:
    folder = tmp_path / "corpora" / "facts"
    folder.mkdir(parents=True)
    (folder / "precious.txt").write_text("mine")
    if content is not None:
        (folder / "manifest.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    before = sorted(path.name for path in folder.iterdir())
    for attempt in (
        ensure_corpus(at(tmp_path), "facts", passages(), ENCODER),
        drop_corpus(at(tmp_path), "facts"),
        first_title(tmp_path, "facts", "fact"),
    ):
        with pytest.raises(CorpusError, match="left unchanged"):
            await attempt
    assert sorted(path.name for path in folder.iterdir()) == before
    assert list_corpora(tmp_path) == ()


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\\b", "/etc", "A", ".hidden", "a\n", "a" * 65, "ä"])
async def test_invalid_names_are_rejected(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a valid corpus name"):
        await ensure_corpus(at(tmp_path), name, passages(), ENCODER)
    with pytest.raises(InputError, match="not a valid corpus name"):
        await first_title(tmp_path, name, "fact")
    assert os.listdir(tmp_path) == ["data"]


async def test_an_empty_list_and_duplicate_ids_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no passages"):
        await ensure_corpus(at(tmp_path), "facts", [], ENCODER)
    with pytest.raises(InputError, match="'p0'"):
        await ensure_corpus(at(tmp_path), "facts", [*passages(), *passages(1)], ENCODER)


def test_one_server_alone_is_rejected() -> None:
    with pytest.raises(SettingsError, match="set both, or neither"):
        stores_for(Settings.load(qdrant_url="http://127.0.0.1:9"))


async def test_a_lost_catalogue_is_an_error_and_a_rebuild_starts_empty(tmp_path: Path) -> None:
    await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER)
    (catalogue,) = (tmp_path / "corpora" / "facts").glob("*/catalogue.sqlite")
    catalogue.unlink()
    for attempt in (
        first_title(tmp_path, "facts", "fact"),
        ensure_corpus(at(tmp_path), "facts", passages(2, "tale"), ENCODER),
    ):
        with pytest.raises(CorpusError, match=r"catalogue.*is missing.*--rebuild"):
            await attempt
    with pytest.raises(CorpusError, match=r"catalogue .*is missing"):
        read_documents(tmp_path, "facts")
    assert not catalogue.exists(), "opening does not create one"
    async with edit_corpus(at(tmp_path), "facts", ENCODER, chunker="none", rebuild=True) as editor:
        record = DocumentRecord(id="d", source="/d", title="d", kind="text", content_hash="1")
        await editor.put(record, passages(1, "tale"))
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        assert len(await (await corpus.view()).matching("fact tale", 9)) == 1


async def test_a_failed_or_empty_build_leaves_no_corpus(tmp_path: Path) -> None:
    servers = Settings.load(
        marag_data_dir=tmp_path, qdrant_url="http://127.0.0.1:9", elasticsearch_url="http://127.0.0.1:9"
    )
    with pytest.raises(CorpusError, match=r"127\.0\.0\.1:9"):
        await ensure_corpus(servers, "facts", passages(), ENCODER)
    assert visible(tmp_path) == []
    async with edit_corpus(at(tmp_path), "facts", ENCODER, chunker="none"):
        pass
    assert visible(tmp_path) == []

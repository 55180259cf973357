"""Readers keep what they opened, and see an edit on the next question; a writer never disturbs them."""

from pathlib import Path

import pytest

from meta_agent_rag.errors import CorpusError, StorageError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.corpus import CorpusFolder, drop_corpus, open_corpus, remove_documents
from meta_agent_rag.retrieval.corpus.editing import edit_corpus, ensure_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.stores import embedded

from .test_retrieval_corpus import ENCODER, at, first_title, passages

NEW = DocumentRecord(id="new", source="n", title="New", kind="text", content_hash="1")
MORE = Passage(id="new", doc_id="new", title="New", text="A newer fact of the matter.")


async def put_new(folder: Path) -> None:
    async with edit_corpus(at(folder), "facts", ENCODER, chunker="none") as editor:
        await editor.put(NEW, [MORE])


async def test_a_reader_opens_and_searches_during_an_edit(tmp_path: Path) -> None:
    await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER)
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        async with edit_corpus(at(tmp_path), "facts", ENCODER, chunker="none") as editor:
            await editor.put(NEW, [MORE])
            assert len(await (await corpus.view()).matching("fact", 9)) == 3
            async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as other:
                assert len(await (await other.view()).matching("fact", 9)) == 3
            with pytest.raises(CorpusError, match="'facts' is being built or changed elsewhere"):
                async with edit_corpus(at(tmp_path), "facts", ENCODER, chunker="none"):
                    pass
        before = await corpus.view()
        await remove_documents(at(tmp_path), "facts", ["facts"])
        for view in (before, await corpus.view()):  # what is gone is not shown, though its index may still be open
            assert [one.passage.id for one in await view.matching("fact", 9)] == ["new"]
        assert len(await (await corpus.view()).nearest((await ENCODER.queries(["x"]))[0], 9)) == 1


async def test_a_reader_follows_a_rebuild_and_survives_a_drop(tmp_path: Path) -> None:
    await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER)
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        async with edit_corpus(at(tmp_path), "facts", ENCODER, chunker="other", rebuild=True) as editor:
            await editor.put(NEW, [MORE])
            assert len(await (await corpus.view()).matching("fact", 9)) == 3
        assert [one.id for one in corpus.catalogue.documents()] == ["new"]
        assert [one.passage.id for one in await (await corpus.view()).matching("fact", 9)] == ["new"]
        await ensure_corpus(at(tmp_path), "facts", passages(), AsyncEncoder(HashEncoder(32)))
        with pytest.raises(CorpusError, match="built with the encoder 'hash-32'"):
            await corpus.view()
    await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER)
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        await drop_corpus(at(tmp_path), "facts")
        assert len(await (await corpus.view()).matching("fact", 9)) == 3


@pytest.mark.parametrize("torn", ["vectors.npy", "rows.npy", "words/meta.json", "words/*.term", "*"])
async def test_a_lost_or_torn_index_is_derived_again(
    torn: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await ensure_corpus(at(tmp_path), "facts", passages(20), ENCODER)
    (index,) = (tmp_path / "corpora" / "facts").glob("*/index-*")
    for file in [file for file in index.rglob(torn) if file.is_file()]:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        view = await corpus.view()
        assert len(await view.matching("fact", 50)) == 20
        assert len(await view.nearest((await ENCODER.queries(["fact"]))[0], 50)) == 20
    assert "derived again" in caplog.text


@pytest.mark.parametrize("lost", ["vectors.npy", "rows.npy", "words/meta.json"])
@pytest.mark.parametrize("torn", [True, False])
async def test_an_edit_derives_a_damaged_index_again(lost: str, torn: bool, tmp_path: Path) -> None:
    await ensure_corpus(at(tmp_path), "facts", passages(20), ENCODER)
    (file,) = (tmp_path / "corpora" / "facts").glob(f"*/index-*/{lost}")
    file.write_bytes(file.read_bytes()[:40]) if torn else file.unlink()
    await put_new(tmp_path)
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        assert len(await (await corpus.view()).matching("fact", 50)) == 21


async def test_a_full_disk_leaves_the_published_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CorpusFolder, "write", full)
    with pytest.raises(StorageError, match=r"No space left.*free disk space"):
        await put_new(tmp_path)
    monkeypatch.undo()
    assert await first_title(tmp_path, "facts", "newer") == "New", (
        "the catalogue had it, so the next reader publishes it"
    )


async def test_beyond_a_size_a_graph_finds_the_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "SCANNED", 300)
    many = [Passage(id=f"p{n:03}", doc_id="d", title="", text=f"word{n} word{n // 7} word{n % 11}") for n in range(500)]
    await ensure_corpus(at(tmp_path), "facts", many[:400], ENCODER)
    await put_new(tmp_path)
    await remove_documents(at(tmp_path), "facts", ["nothing"])
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        assert list((tmp_path / "corpora" / "facts").glob("*/index-*/graph.usearch"))
        vector = (await ENCODER.queries(["word33 word4 word0"]))[0]
        found = await (await corpus.view()).nearest(vector, 5)
        assert found[0].passage.id == "p033"
        assert found[0].dense == pytest.approx(1.0, abs=1e-4)
        vector = (await ENCODER.queries([MORE.searchable()]))[0]
        assert (await (await corpus.view()).nearest(vector, 1))[0].passage == MORE
        rows = corpus.catalogue.rows_of(["new"])
        assert [one.passage for one in await (await corpus.view()).nearest(vector, 9, among=rows)] == [MORE]

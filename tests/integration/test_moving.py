"""A corpus is copied to servers and back: copies are verified, and nothing is lost on failure."""

from pathlib import Path

import pytest

from meta_agent_rag.errors import CorpusError, SettingsError, UnknownNameError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import Catalogue, DocumentRecord
from meta_agent_rag.retrieval.corpus.corpus import drop_corpus, list_corpora, open_corpus, remove_documents
from meta_agent_rag.retrieval.corpus.editing import edit_corpus, ensure_corpus
from meta_agent_rag.retrieval.corpus.live import edit_live
from meta_agent_rag.retrieval.corpus.moving import copy_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import HybridRetriever
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings

ENCODER = AsyncEncoder(HashEncoder())
PASSAGES = [
    Passage(id=f"p{number}", doc_id=f"p{number}", title=f"Lighthouse {number}", text=f"Keeper number {number} slept.")
    for number in range(30)
]


@pytest.fixture
def settings(tmp_path: Path, elasticsearch_url: str) -> Settings:
    """The `qdrant-client` in local mode accepts a path as the URL."""
    settings = Settings.load(marag_data_dir=tmp_path / "data", elasticsearch_url=elasticsearch_url)
    return settings.model_copy(update={"qdrant_url": str(tmp_path / "qdrant")})


def embedded(settings: Settings) -> Settings:
    return settings.model_copy(update={"qdrant_url": None, "elasticsearch_url": None})


async def found(settings: Settings, query: str) -> list[str]:
    async with open_corpus(settings, "lights", "hash-64", 64) as corpus:
        retriever = HybridRetriever(corpus=corpus, encoder=ENCODER)
        return [one.passage.id for one in (await retriever.retrieve([query], k=3)).found]


async def test_a_corpus_is_copied_to_servers_and_back(settings: Settings) -> None:
    await ensure_corpus(embedded(settings), "lights", PASSAGES, ENCODER)
    before = await found(settings, "Who slept at Lighthouse 7?")
    steps: list[tuple[int, int]] = []
    report = await copy_corpus(settings, "lights", "servers", lambda *step: steps.append(step))
    assert steps[-1] == (30, 30)
    assert report.passages == report.dense_passages == report.lexical_passages == 30
    assert report.checksum == report.dense_checksum == report.lexical_checksum
    (manifest,) = list_corpora(settings.marag_data_dir)
    assert (manifest.dense_store, manifest.lexical_store) == ("qdrant", "elasticsearch")
    home = settings.marag_data_dir / "corpora" / "lights"
    assert sorted(path.name for path in home.iterdir()) == ["catalogue.sqlite", "manifest.json"]
    assert await found(settings, "Who slept at Lighthouse 7?") == before
    with pytest.raises(CorpusError, match="already 'servers'"):
        await copy_corpus(settings, "lights", "servers")
    with pytest.raises(CorpusError, match=r"are on servers.*marag corpora copy lights --to embedded"):
        await found(embedded(settings), "x")

    # Documents can be added and removed there too.
    async with edit_corpus(settings, "lights", ENCODER, chunker="none") as editor:
        record = DocumentRecord(id="new", source="/new", title="New", kind="text", content_hash="1")
        await editor.put(record, [Passage(id="new", doc_id="new", title="Beacon", text="A beacon named Zaffre.")])
    assert (await found(settings, "Zaffre beacon"))[0] == "new"

    # Back, even if the servers are no longer reachable: the catalogue has everything.
    back = await copy_corpus(embedded(settings), "lights", "embedded")
    assert back.dense_passages == back.lexical_passages == 31
    assert (await found(embedded(settings), "Zaffre beacon"))[0] == "new"


async def test_a_corpus_is_built_on_servers_if_both_are_configured(settings: Settings) -> None:
    manifest = await ensure_corpus(settings, "lights", PASSAGES, ENCODER)
    assert manifest.lexical_store == "elasticsearch"
    async with open_corpus(settings, "lights", "hash-64", 64) as corpus:
        assert len(await corpus.lexical.search("keeper", 50)) == 30
    await drop_corpus(settings, "lights")
    assert list_corpora(settings.marag_data_dir) == ()


async def test_a_document_removed_from_servers_can_be_added_again(settings: Settings) -> None:
    records = [
        DocumentRecord(id=one.id, source=f"/{one.id}", title=one.title, kind="text", content_hash=one.id)
        for one in PASSAGES
    ]
    async with edit_corpus(settings, "lights", ENCODER, chunker="none") as editor:
        for record, passage in zip(records, PASSAGES, strict=True):
            await editor.put(record, [passage])
    await remove_documents(settings, "lights", ["p7", "unknown"])
    await remove_documents(settings, "lights", ["p7"])
    async with open_corpus(settings, "lights", "hash-64", 64) as corpus:
        for store in (corpus.dense, corpus.lexical):
            assert {passage.id async for passage in store.scan()} == {f"p{n}" for n in range(30) if n != 7}
        async with edit_live(settings, corpus, ENCODER, chunker="none") as editor:  # like the service
            await editor.remove(["p8"])
            await editor.put(records[7], [PASSAGES[7]])
        for store in (corpus.dense, corpus.lexical):
            assert {passage.id async for passage in store.scan()} == {f"p{n}" for n in range(30) if n != 8}
        assert await corpus.lexical.search("Lighthouse 8 keeper number 8", 50)
        assert all(one.passage.id != "p8" for one in await corpus.lexical.search("8", 50))
    assert list_corpora(settings.marag_data_dir)[0].passages == 29


async def test_an_unreachable_server_leaves_the_corpus_in_place(settings: Settings) -> None:
    away = settings.model_copy(update={"elasticsearch_url": "http://127.0.0.1:9"})
    await ensure_corpus(embedded(settings), "lights", PASSAGES, ENCODER)
    before = await found(settings, "Lighthouse 3")
    with pytest.raises(CorpusError, match=r"127\.0\.0\.1:9"):
        await copy_corpus(away, "lights", "servers")
    assert await found(settings, "Lighthouse 3") == before
    with pytest.raises(UnknownNameError, match="embedded, servers"):
        await copy_corpus(settings, "lights", "moon")
    with pytest.raises(CorpusError, match="no corpus 'none'"):
        await copy_corpus(settings, "none", "servers")


async def test_missing_server_urls_are_reported(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    await ensure_corpus(embedded(settings), "lights", PASSAGES, ENCODER)
    with pytest.raises(SettingsError, match="Set QDRANT_URL and ELASTICSEARCH_URL to copy the corpus 'lights' there"):
        await copy_corpus(embedded(settings), "lights", "servers")
    assert caplog.text == ""


async def test_an_interrupted_edit_is_completed_wherever_the_corpus_is(settings: Settings) -> None:
    await ensure_corpus(embedded(settings), "lights", PASSAGES, ENCODER)
    catalogue = Catalogue(settings.marag_data_dir / "corpora" / "lights" / "catalogue.sqlite", 64)
    passage = Passage(id="late", doc_id="late", title="Zaffre", text="A beacon named Zaffre, lit at night.")
    catalogue.stage(DocumentRecord(id="late", source="/late", title="Zaffre", kind="text", content_hash="1"), [passage])
    catalogue.add_vectors(["late"], await ENCODER.passages([passage.searchable()]))
    catalogue.publishing(["late"])
    catalogue.close()
    away = settings.model_copy(update={"elasticsearch_url": "http://127.0.0.1:9"})
    with pytest.raises(CorpusError):
        await copy_corpus(away, "lights", "servers")
    assert (await copy_corpus(settings, "lights", "servers")).passages == 30
    assert (await copy_corpus(settings, "lights", "embedded")).passages == 30
    assert (await found(embedded(settings), "Zaffre beacon"))[0] == "late"
    assert list_corpora(settings.marag_data_dir)[0].passages == 31

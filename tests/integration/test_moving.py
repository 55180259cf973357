"""A corpus is copied to servers and back, edited there, and nothing is lost on failure."""

from pathlib import Path

import pytest

from meta_agent_rag.errors import CorpusError, SettingsError, UnknownNameError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.corpus import (
    Corpus,
    copy_corpus,
    drop_corpus,
    list_corpora,
    open_corpus,
    remove_documents,
)
from meta_agent_rag.retrieval.corpus.editing import edit_corpus, ensure_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import HybridRetriever
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings

pytestmark = pytest.mark.slow
ENCODER = AsyncEncoder(HashEncoder())
PASSAGES = [
    Passage(id=f"p{number}", doc_id=f"p{number}", title=f"Lighthouse {number}", text=f"Keeper number {number} slept.")
    for number in range(30)
]


@pytest.fixture
def settings(tmp_path: Path, elasticsearch_url: str, qdrant_url: str) -> Settings:
    return Settings.load(marag_data_dir=tmp_path / "data", elasticsearch_url=elasticsearch_url, qdrant_url=qdrant_url)


def embedded(settings: Settings) -> Settings:
    return settings.model_copy(update={"qdrant_url": None, "elasticsearch_url": None})


async def found(settings: Settings, query: str) -> list[str]:
    async with open_corpus(settings, "lights", "hash-64", 64) as corpus:
        retriever = HybridRetriever(corpus=corpus, encoder=ENCODER)
        return [one.passage.id for one in (await retriever.retrieve([query], k=3)).found]


async def held(corpus: Corpus) -> set[str]:
    """The passages that both indexes find."""
    view = await corpus.view()
    near = await view.nearest((await ENCODER.queries(["keeper"]))[0], 50)
    words = await view.matching("keeper", 50)
    assert {one.passage.id for one in near} == {one.passage.id for one in words}
    return {one.passage.id for one in words}


async def test_a_corpus_is_copied_to_servers_and_back(settings: Settings) -> None:
    await ensure_corpus(embedded(settings), "lights", PASSAGES, ENCODER)
    before = await found(settings, "Who slept at Lighthouse 7?")
    manifest = await copy_corpus(settings, "lights", "servers")
    assert (manifest.dense_store, manifest.lexical_store, manifest.passages) == ("qdrant", "elasticsearch", 30)
    assert list_corpora(settings.marag_data_dir) == (manifest,)
    assert await copy_corpus(settings, "lights", "servers") == manifest, "it is there already"
    assert await found(settings, "Who slept at Lighthouse 7?") == before
    with pytest.raises(CorpusError, match=r"are on servers.*marag corpora copy lights --to embedded"):
        await found(embedded(settings), "x")

    # Documents can be added and removed there too.
    async with edit_corpus(settings, "lights", ENCODER, chunker="none") as editor:
        record = DocumentRecord(id="new", source="/new", title="New", kind="text", content_hash="1")
        await editor.put(record, [Passage(id="new", doc_id="new", title="Beacon", text="A beacon named Zaffre.")])
    assert (await found(settings, "Zaffre beacon"))[0] == "new"

    # Back, even if the servers are no longer reachable: the catalogue has everything.
    back = await copy_corpus(embedded(settings), "lights", "embedded")
    assert back.passages == 31
    assert (await found(embedded(settings), "Zaffre beacon"))[0] == "new"


async def test_a_corpus_is_built_on_servers_if_both_are_configured(settings: Settings) -> None:
    manifest = await ensure_corpus(settings, "lights", PASSAGES, ENCODER)
    assert manifest.lexical_store == "elasticsearch"
    async with open_corpus(settings, "lights", "hash-64", 64) as corpus:
        assert len(await (await corpus.view()).matching("keeper", 50)) == 30
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
        assert await held(corpus) == {f"p{n}" for n in range(30) if n != 7}
        async with edit_corpus(settings, "lights", ENCODER, chunker="none", shared=True) as editor:  # like the service
            await editor.remove(["p8"])
            await editor.put(records[7], [PASSAGES[7]])
        assert await held(corpus) == {f"p{n}" for n in range(30) if n != 8}
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

"""A corpus on servers is built, edited and dropped."""

from pathlib import Path

import pytest

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.corpus import Corpus, drop_corpus, list_corpora, open_corpus, remove_documents
from meta_agent_rag.retrieval.corpus.editing import edit_corpus, ensure_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
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


async def held(corpus: Corpus) -> set[str]:
    """The passages that both indexes find."""
    view = await corpus.view()
    near = await view.nearest((await ENCODER.queries(["keeper"]))[0], 50)
    words = await view.matching("keeper", 50)
    assert {one.passage.id for one in near} == {one.passage.id for one in words}
    return {one.passage.id for one in words}


async def test_a_corpus_is_built_on_servers_if_both_are_configured(settings: Settings) -> None:
    manifest = await ensure_corpus(settings, "lights", PASSAGES, ENCODER)
    assert manifest.stores == "servers"
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

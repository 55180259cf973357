"""Links across hops: finding the second passage, which shares no word with the question."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.corpus import Corpus, open_corpus
from meta_agent_rag.retrieval.corpus.editing import edit_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import HybridRetriever, confidence
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings

QUESTION = "Where was the director of Northern Harbour born?"
TEXTS = {
    "film": ("Northern Harbour (film)", "Northern Harbour is a 1951 drama directed by Ilse Brandvold."),
    "director": ("Ilse Brandvold", "Brandvold came into the world in Tromso and studied law."),
    "other": ("Director", "A director leads a film, an opera or a company and was once born."),
    "remake": ("The Quiet Pier", "A remake of Northern Harbour by somebody else."),
    "painting": ("Grey Morning", "Grey Morning is by the painter Runa Falk."),
    "couple": ("Skerry group", "It had two founders, Runa Falk and Olof, her husband."),
    "unrelated": ("Basalt", "Basalt is a volcanic rock found on many islands."),
    **{f"twin{number}": ("Halvard", f"Halvard is the name of village number {number}.") for number in range(7)},
    "village": ("Sorvik", "Sorvik lies near Halvard, where Northern Harbour was shown."),
}
PASSAGES = [Passage(id=id_, doc_id=id_, title=title, text=text) for id_, (title, text) in TEXTS.items()]


@pytest.fixture
async def corpus(tmp_path: Path) -> AsyncIterator[Corpus]:
    settings = Settings.load(marag_data_dir=tmp_path)
    encoder = AsyncEncoder(HashEncoder())
    async with edit_corpus(settings, "films", encoder, chunker="none") as editor:
        for passage in PASSAGES:
            record = DocumentRecord(
                id=passage.id, source=passage.id, title=passage.title, kind="text", content_hash="1",
                aliases=("The Harbour Woman",) if passage.id == "director" else (),
            )  # fmt: skip
            await editor.put(record, [passage])
    async with open_corpus(settings, "films", "hash-64", 64) as opened:
        yield opened


def retriever(corpus: Corpus, **changes: Any) -> HybridRetriever:
    return replace(HybridRetriever(corpus=corpus, encoder=AsyncEncoder(HashEncoder()), pool=3), **changes)


async def test_the_passage_named_by_the_first_one_ranks_second(corpus: Corpus) -> None:
    found = (await retriever(corpus).retrieve([QUESTION], k=2)).found
    assert [one.passage.id for one in found] == ["film", "director"]
    assert found[1].via == "film"
    assert found[0].via is None
    without = await retriever(corpus, links=False).retrieve([QUESTION], k=20)
    assert all(one.via is None for one in without.found)


async def test_every_candidate_has_a_cosine(corpus: Corpus) -> None:
    found = (await retriever(corpus).retrieve([QUESTION], k=20)).found
    assert all(one.dense is not None for one in found)
    unlinked = {
        one.passage.id: one for one in (await retriever(corpus, links=False, pool=50).retrieve([QUESTION], k=50)).found
    }
    for one in found:
        other = unlinked[one.passage.id]
        assert one.dense == pytest.approx(other.dense, abs=2e-5)
        assert one.lexical in {None, other.lexical}


async def test_an_alias_of_a_document_counts_as_a_name(corpus: Corpus) -> None:
    found = (
        await retriever(corpus, pool=1).retrieve(["What did the Harbour Woman study? The Harbour Woman!"], k=1)
    ).found
    assert found[0].passage.id == "director"


async def test_passages_sharing_a_rare_name_are_linked(corpus: Corpus) -> None:
    """The painter's name is no title, and the question names only the painting."""
    found = (await retriever(corpus, pool=1).retrieve(["Who was married to the painter of Grey Morning?"], k=2)).found
    assert [one.passage.id for one in found] == ["painting", "couple"]
    assert found[1].via == "painting"


async def test_a_link_from_something_relevant_passes_the_floor(corpus: Corpus) -> None:
    best = (await retriever(corpus, fusion="blend", blend_floor=0.0).retrieve([QUESTION], k=5)).found
    scores = {one.passage.id: one for one in best}
    floor = (confidence(scores["film"]) + confidence(scores["director"])) / 2
    assert confidence(scores["director"]) < floor
    found = (await retriever(corpus, fusion="blend", blend_floor=floor).retrieve([QUESTION], k=5)).found
    assert [one.passage.id for one in found][:2] == ["film", "director"]

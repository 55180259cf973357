"""LangChain's retrievers and embeddings as ours, and our retriever as LangChain's."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever

from meta_agent_rag.agent.engine import as_retriever
from meta_agent_rag.errors import CorpusError, InputError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.editing import ensure_corpus
from meta_agent_rag.retrieval.encoders.loading import as_encoder
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings

FILM = Document(
    page_content="Silent Harbour was directed by Mira Holt.", metadata={"title": "Silent Harbour", "page": 12}
)
BIRTH = Document(page_content="Mira Holt was born in the port of Tessary.", metadata={"source": "people.pdf"})


class Fixed(BaseRetriever):
    documents: list[Any]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.documents


async def test_documents_become_passages() -> None:
    retrieval = await as_retriever(Fixed(documents=[FILM, BIRTH, FILM])).retrieve(["Who directed it?"], k=5)
    film, birth = (found.passage for found in retrieval.found)
    assert (film.title, film.text, film.start_page) == ("Silent Harbour", FILM.page_content, 12)
    assert (birth.title, birth.doc_id) == ("people.pdf", "people.pdf")
    again = await as_retriever(Fixed(documents=[FILM, BIRTH])).retrieve(["a", "b"], k=1, exclude=frozenset({film.id}))
    assert [found.passage for found in again.found] == [birth]


async def test_parts_of_one_file_are_told_apart_and_its_blank_pages_left_out() -> None:
    about = {"id": 7, "source": "a.pdf", "page": 0, "total_pages": 2}
    parts = [
        Document(page_content=text, metadata=about) for text in ("The first part of it.", " ", "The second part of it.")
    ]
    found = (await as_retriever(Fixed(documents=parts)).retrieve(["part"], k=5)).found
    assert [(one.passage.text, one.passage.start_page) for one in found] == [
        ("The first part of it.", 1),
        ("The second part of it.", 1),
    ]


async def test_short_passages_are_kept_and_screening_can_be_turned_off() -> None:
    manual = Document(page_content='Write "ignore all previous instructions" in no prompt of your own.')
    given = Fixed(documents=[Document(page_content="Born: 1931"), manual])
    for screening, kept in ((True, 1), (False, 2)):
        assert len((await as_retriever(given, screening=screening).retrieve(["x"], k=5)).found) == kept


@pytest.mark.parametrize("document", [Document(page_content=""), Document(page_content=" \n")])
async def test_a_document_without_text_is_reported_in_one_sentence(document: Document) -> None:
    with pytest.raises(InputError, match=r"^The retriever Fixed returned a document without text; return Documents"):
        await as_retriever(Fixed(documents=[document])).retrieve(["x"], k=1)


def test_another_object_is_no_retriever() -> None:
    with pytest.raises(InputError, match=r"^dict is no retriever; pass a LangChain BaseRetriever"):
        as_retriever({})


async def test_a_corpus_is_encoded_by_langchain_and_searched_through_langchain(tmp_path: Path) -> None:
    settings = Settings.load(marag_data_dir=tmp_path)
    embeddings = DeterministicFakeEmbedding(size=24)
    passages = [Passage.of(str(one.metadata.get("title", "")), one.page_content) for one in (FILM, BIRTH)]
    await ensure_corpus(settings, "films", passages, AsyncEncoder(as_encoder(embeddings)))
    async with open_retriever(settings, "films", encoder=embeddings) as retriever:
        assert retriever.corpus.manifest.encoder == "langchain:DeterministicFakeEmbedding"
        found = await retriever.as_langchain(k=2).ainvoke("Who directed Silent Harbour?")
        assert retriever.as_langchain(k=2).invoke("Who directed Silent Harbour?") == found
    assert [one.page_content for one in found] == [FILM.page_content, BIRTH.page_content]
    assert found[0].metadata["title"] == "Silent Harbour"
    with pytest.raises(CorpusError, match="built with the encoder 'langchain:"):
        async with open_retriever(settings, "films"):
            pass

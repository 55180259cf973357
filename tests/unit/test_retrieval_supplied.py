"""Retrieval over passages supplied with a question."""

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.supplied import SuppliedRetriever


def passage(title: str, text: str) -> Passage:
    return Passage(id=title.lower(), doc_id=title.lower(), title=title, text=text)


FILM = passage("The Salt Road", "It is a film of 1971 that Mira Holt directed.")
BIRTH = passage("Mira Holt", "She came from Oslo.")
OTHERS = tuple(
    passage(f"Town {place}", f"The film museum of town {place} shows where a director was born.") for place in range(8)
)
QUESTION = "Where was the director of The Salt Road born?"


def searching(*passages: Passage) -> SuppliedRetriever:
    return SuppliedRetriever(passages=passages, encoder=AsyncEncoder(HashEncoder()))


async def test_a_title_mentioned_in_a_named_passage_is_found_without_shared_words() -> None:
    found = await searching(*OTHERS, BIRTH, FILM).retrieve([QUESTION], k=2)
    assert [one.passage.title for one in found.found] == ["The Salt Road", "Mira Holt"]
    assert found.found[1].via == "the salt road"


async def test_excluded_passages_are_replaced_by_the_next() -> None:
    retriever = searching(*OTHERS, BIRTH, FILM)
    every = await retriever.retrieve([QUESTION], k=20)
    assert len(every.found) == len(every.pool_ids) == 10
    rest = await retriever.retrieve([QUESTION], k=3, exclude=frozenset({"the salt road", "mira holt"}))
    assert [one.passage.id for one in rest.found] == [one.passage.id for one in every.found[2:5]]

"""HippoRAG: activation spreads from the names in a question to the passages that contain them."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.methods.hipporag import EXPANSIONS, spread
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.retrieval.supplied import SuppliedRetriever
from tests.methods import ListRetriever, answered, numbered_passages

QUESTION = "Where was the director of Salt Road born?"


def passage(id_: str, title: str, text: str) -> Passage:
    return Passage(id=id_, doc_id=id_, title=title, text=text)


FILM = passage("film", "Salt Road", "Salt Road is a film by Mira Holt.")
PERSON = passage("person", "Mira Holt", "Mira Holt was born in the town of Alder Bay.")
OTHER = passage("other", "Salt trade", "The trade in salt was old.")
MILL = passage("mill", "Holt Mill", "The mill of the town of Cedar Bay turns.")


def found(*passages: Passage) -> list[Found]:
    return [Found(passage=one, score=1.0) for one in passages]


def test_activation_spreads_along_names() -> None:
    every = found(OTHER, MILL, PERSON, FILM)
    active = spread(QUESTION, every, every[:2])
    assert max(active.passages, key=lambda id_: active.passages[id_]) == "film"
    assert active.passages["person"] > active.passages["mill"], "the name Mira Holt links her to the film"
    assert active.names["mira holt"] > active.names["alder bay"] > active.names.get("cedar bay", 0.0)


words = st.sampled_from(["Mira Holt", "Salt Road", "Alder Bay", "Elm Park", "a mill", "the sea", "Oslo"])
texts = st.lists(words, min_size=1, max_size=6).map(lambda parts: f"There is {' and '.join(parts)}.")


@given(st.lists(texts, max_size=8), texts, st.integers(0, 8))
def test_activations_are_non_negative_and_sum_to_at_most_one(bodies: list[str], question: str, firsts: int) -> None:
    every = found(*(passage(f"p{place}", f"Title {place}", body) for place, body in enumerate(bodies)))
    active = spread(question, every, every[:firsts])
    gathered = [*active.passages.values(), *active.names.values()]
    assert set(active.passages) == {one.passage.id for one in every}
    assert all(value >= 0.0 for value in gathered)
    assert sum(gathered) <= 1.0 + 1e-9


async def test_it_reads_the_passages_with_the_most_activation(tmp_path: Path) -> None:
    """The passage on the person shares no word with the question; only the film's director leads to it."""
    encoder = AsyncEncoder(HashEncoder())
    retriever = SuppliedRetriever(passages=(OTHER, MILL, PERSON, FILM), encoder=encoder)
    script = {"baseline": {"rationale": "She was born there.", "short_answer": "Alder Bay"}}
    run = await answered(tmp_path, "hipporag", script, "RETRIEVAL_TOP_K=2", question=QUESTION, retriever=retriever)
    assert run.stages == ["baseline"], "retrieval calls no model"
    assert run.answer.rounds[0].packing.packed_ids == ("film", "person")
    assert run.answer.short_answer == "Alder Bay"


async def test_it_searches_for_each_name_once(tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(60))
    await answered(tmp_path, "hipporag", {}, retriever=retriever)
    assert len(retriever.queries) == 1 + EXPANSIONS
    assert len(set(retriever.queries)) == 1 + EXPANSIONS

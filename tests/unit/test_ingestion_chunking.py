"""Chunking: every word is in a passage, no passage is too long, and nothing is cut needlessly."""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.ingestion.chunking import Chunking, cut
from meta_agent_rag.ingestion.document import Block, Document
from meta_agent_rag.retrieval.passage import Passage

PROSE = "The river rises in the hills. It is long, cold and deep. Dr. Holt measured it in 1901. Nobody did so again. "
ARBITRARY_TEXT = st.text(alphabet=st.sampled_from("ab \n\t.!?。\"')x\u00a0é🦆\u2028"), max_size=300) | st.text(
    max_size=120
)
DOCUMENTS = st.lists(st.tuples(ARBITRARY_TEXT, st.sampled_from([None, "A", "B"])), max_size=8)
each_chunker = pytest.mark.parametrize("chunker", ["characters", "sentence"])


def document(*blocks: tuple[str, str | None]) -> Document:
    kept = [Block(text=text.strip(), section=section) for text, section in blocks if text.strip()]
    return Document(title="Rivers", kind="text", blocks=tuple(kept))


def passages_of(text: Document, chunker: str = "characters", most: int = 64, overlap: int = 16) -> list[Passage]:
    return list(cut(text, "d", Chunking(chunker=chunker, characters=most, overlap=overlap)))


def require_whole(text: Document, passages: Sequence[Passage], most: int) -> None:
    """Check that spans are exact and ordered, ids are unique, and only white space is left out."""
    covered: set[int] = set()
    earlier = (-1, -1)
    for passage in passages:
        assert passage.span is not None
        start, end = passage.span
        assert passage.text == text.text[start:end] == passage.text.strip() != ""
        assert len(passage.text) <= most
        assert earlier[0] < start
        assert earlier[1] <= end
        earlier = (start, end)
        covered.update(range(start, end))
    assert all(character.isspace() for place, character in enumerate(text.text) if place not in covered)
    assert len({passage.id for passage in passages}) == len(passages)


@each_chunker
@given(DOCUMENTS, st.integers(2, 80), st.data())
def test_every_text_is_covered_in_order_by_exact_spans(
    chunker: str, blocks: list[tuple[str, str | None]], most: int, data: st.DataObject
) -> None:
    text = document(*blocks)
    overlap = data.draw(st.integers(0, most - 1))
    passages = passages_of(text, chunker, most, overlap)
    require_whole(text, passages, most)
    assert passages == passages_of(text, chunker, most, overlap), "the same document gives the same passages"


def test_characters_end_at_sentences_and_overlap() -> None:
    passages = passages_of(document((PROSE * 5, None)), most=128, overlap=40)
    assert all(passage.text.endswith(".") for passage in passages)
    assert all(passage.text.startswith(("The", "It", "Dr.", "Nobody", "Holt")) for passage in passages)
    spans = [passage.span or (0, 0) for passage in passages]
    assert all(0 < first[1] - second[0] <= 40 for first, second in pairwise(spans))


def test_sentences_are_whole_and_overlap() -> None:
    passages = passages_of(document((PROSE * 8, None)), "sentence", most=200)
    assert all(passage.text.endswith(("hills.", "deep.", "1901.", "again.")) for passage in passages)
    assert not any(passage.text.startswith("Holt") for passage in passages), "'Dr.' does not end a sentence"
    spans = [passage.span or (0, 0) for passage in passages]
    assert all(end - start > 100 for start, end in spans[:-1])
    assert any(second[0] < first[1] for first, second in pairwise(spans))


@each_chunker
def test_passages_stay_within_a_section_and_have_pages(chunker: str) -> None:
    text = Document(
        title="Rivers",
        kind="pdf",
        blocks=(
            Block(text="Danube", section="Danube", page=1),
            Block(text=PROSE * 2, section="Danube", page=1),
            Block(text=PROSE.strip(), section="Danube", page=2),
            Block(text="Rhine", section="Rhine", page=3),
            Block(text=PROSE.strip(), section="Rhine", page=3),
        ),
    )
    danube, rhine = passages_of(text, chunker, 2000)
    assert (danube.section, danube.start_page, danube.end_page) == ("Danube", 1, 2)
    assert (rhine.section, rhine.start_page, rhine.end_page, rhine.page_breaks) == ("Rhine", 3, 3, ())
    assert rhine.text.startswith("Rhine\n\n")
    ((place, page),) = danube.page_breaks
    assert (page, danube.text[place:]) == (2, PROSE.strip())
    parts = passages_of(text, chunker, 200)
    assert all(bool(one.page_breaks) == (one.start_page != one.end_page) for one in parts)
    assert {(one.title, one.doc_id) for one in parts} == {("Rivers", "d")}


def test_a_very_short_section_is_joined_with_the_next() -> None:
    text = document(("Part One", "Part One"), ("The Source", "The Source"), (PROSE, "The Source"), ("End.", "End"))
    (passage,) = passages_of(text, most=2000)
    assert passage.section == "The Source"
    assert passage.text.startswith("Part One")


def test_an_unchanged_passage_keeps_its_id() -> None:
    rest = (PROSE * 3, "A"), ("Rapids follow the source at once.", "B")
    first, second = (passages_of(document(*more, *rest)) for more in ([], [("A new beginning of the text.", "0")]))
    assert {passage.id for passage in first} < {passage.id for passage in second}
    renamed = passages_of(replace(document((PROSE * 3, "A")), title="Other"))
    assert not {passage.id for passage in renamed} & {passage.id for passage in first}


@each_chunker
def test_text_without_spaces_takes_linear_time(chunker: str) -> None:
    seconds = []
    for length in (50_000, 200_000):
        began = time.process_time()
        passages_of(document(("x" * length, None)), chunker, 512)
        seconds.append(time.process_time() - began)
    assert seconds[1] < 10 * seconds[0] + 1.0

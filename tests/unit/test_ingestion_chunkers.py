"""Chunkers: every word is in a passage, no passage is too long, and nothing is cut needlessly."""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.ingestion.chunkers.characters import cut as cut_characters
from meta_agent_rag.ingestion.chunkers.sentence import cut as cut_sentences
from meta_agent_rag.ingestion.chunkers.sentence import encoder_limit, token_counter
from meta_agent_rag.ingestion.document import Block, Document
from meta_agent_rag.retrieval.encoders.packaged import PackagedEncoder
from meta_agent_rag.retrieval.passage import Passage
from tests.chunked import DOCUMENTS, PROSE, document, require_whole

MINILM = PackagedEncoder.folder
Cutter = Callable[[Document], list[Passage]]


def words(text: str) -> int:
    return len(text.split())


def by_characters(text: Document, characters: int = 64, overlap: int = 16) -> list[Passage]:
    return list(cut_characters(text, "d", characters=characters, overlap=overlap))


def by_sentences(text: Document, limit: int = 16) -> list[Passage]:
    return list(cut_sentences(text, "d", count=words, limit=limit))


@given(DOCUMENTS, st.integers(1, 80), st.data())
def test_characters_keep_all_words_within_the_limit(
    blocks: list[tuple[str, str | None]], most: int, data: st.DataObject
) -> None:
    text = document(*blocks)
    overlap = data.draw(st.integers(0, most - 1))
    passages = by_characters(text, most, overlap)
    require_whole(text, passages)
    assert all(len(passage.text) <= most for passage in passages)
    assert passages == by_characters(text, most, overlap)


@given(DOCUMENTS, st.integers(4, 40))
def test_sentences_keep_all_words_within_the_limit(blocks: list[tuple[str, str | None]], limit: int) -> None:
    text = document(*blocks)
    passages = by_sentences(text, limit)
    require_whole(text, passages)
    assert all(words(passage.searchable()) <= limit for passage in passages)
    assert passages == by_sentences(text, limit)


@given(st.text(alphabet="ab .\n", max_size=400))
def test_only_an_overlong_word_is_cut(raw: str) -> None:
    text = document((raw, None))
    for passage in by_characters(text, 20, 5):
        assert passage.span is not None
        start, end = passage.span
        for place in (start, end):
            around = text.text[max(place - 1, 0) : place + 1]
            if 0 < place < len(text.text) and around == "".join(around.split()):
                assert len(text.text[:place].split()[-1] + text.text[place:].split()[0]) > 20


def test_character_chunks_end_at_sentences_and_overlap() -> None:
    passages = by_characters(document((PROSE * 5, None)), 128, 40)
    assert all(passage.text.endswith(".") for passage in passages)
    assert all(passage.text.startswith(("The", "It", "Dr.", "Nobody", "Holt")) for passage in passages)
    spans = [passage.span or (0, 0) for passage in passages]
    assert all(0 < first[1] - second[0] <= 40 for first, second in pairwise(spans))


def test_passages_stay_within_a_section_and_have_pages() -> None:
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
    passages = by_characters(text, 2000, 0)
    assert [(passage.section, passage.start_page, passage.end_page) for passage in passages] == [
        ("Danube", 1, 2), ("Rhine", 3, 3),
    ]  # fmt: skip
    assert passages[1].text.startswith("Rhine\n\n")
    ((place, page),) = passages[0].page_breaks
    assert (page, passages[0].text[place:]) == (2, PROSE.strip())
    assert passages[1].page_breaks == ()
    parts = by_characters(text, 200, 20)
    assert all(bool(one.page_breaks) == (one.start_page != one.end_page) for one in parts)
    assert all(passage.title == "Rivers" and passage.doc_id == "d" for passage in passages)


def test_a_very_short_section_is_joined_with_the_next() -> None:
    text = document(("Part One", "Part One"), ("The Source", "The Source"), (PROSE, "The Source"), ("End.", "End"))
    (passage,) = by_characters(text, 2000, 0)
    assert passage.section == "The Source"
    assert passage.text.startswith("Part One")


def test_an_unchanged_passage_keeps_its_id() -> None:
    first = by_characters(document((PROSE * 3, "A"), ("Rapids follow the source at once.", "B")))
    second = by_characters(document(("A new beginning of the text.", "0"), (PROSE * 3, "A"),
                                    ("Rapids follow the source at once.", "B")))  # fmt: skip
    kept = {passage.id for passage in first} & {passage.id for passage in second}
    assert len(kept) == len(first)
    renamed = by_characters(replace(document((PROSE * 3, "A")), title="Other"))
    assert not {passage.id for passage in renamed} & {passage.id for passage in first}


def test_sentence_chunks_hold_whole_sentences_and_overlap() -> None:
    passages = by_sentences(document((PROSE * 8, None)), 40)
    ends = {"hills.", "deep.", "1901.", "again."}
    assert all(passage.text.split()[-1] in ends for passage in passages)
    assert not any(passage.text.startswith("Holt") for passage in passages), "'Dr.' does not end a sentence"
    assert all(20 <= words(passage.searchable()) <= 40 for passage in passages)
    for before, after in pairwise(passages):
        assert before.end_sentence is not None
        assert after.start_sentence is not None
        assert before.end_sentence - 1 <= after.start_sentence <= before.end_sentence + 1
        assert before.span is not None
        assert after.span is not None
    assert passages[0].start_sentence == 0
    assert passages[-1].end_sentence == 31
    assert any(before.end_sentence == after.start_sentence for before, after in pairwise(passages))


def test_sentence_chunks_fill_the_input_of_the_packaged_encoder() -> None:
    count = token_counter(MINILM)
    assert encoder_limit(MINILM) == 248
    assert count("a river " * 300) == 602, "neither truncated nor padded"
    text = document((PROSE * 60, None), title="The rivers of the north")
    passages = list(cut_sentences(text, "d", count=count, limit=256))
    sizes = [count(passage.searchable()) for passage in passages]
    assert max(sizes) <= 256
    assert min(sizes) >= 128
    assert sorted(sizes)[1] > 230
    endless = list(cut_sentences(document(("x" * 20_000, None)), "d", count=count, limit=256))
    assert max(len(passage.text) for passage in endless) <= 256 * 8


@pytest.mark.parametrize(
    "cutter", [lambda text: by_characters(text, 512, 64), by_sentences], ids=["characters", "sentence"]
)
def test_text_without_spaces_takes_linear_time(cutter: Cutter) -> None:
    short, long = document(("x" * 50_000, None)), document(("x" * 200_000, None))
    seconds = []
    for text in (short, long):
        began = time.process_time()
        cutter(text)
        seconds.append(time.process_time() - began)
    assert seconds[1] < 10 * seconds[0] + 1.0

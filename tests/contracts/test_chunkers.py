"""The contract of every chunker, whichever file it comes from."""

from collections.abc import Callable

import pytest
from hypothesis import given

from meta_agent_rag.discovery import by_name
from meta_agent_rag.errors import DuplicateNameError, UnknownNameError
from meta_agent_rag.ingestion.chunkers import Chunker, ChunkingOptions, discover_chunkers, prepared
from meta_agent_rag.ingestion.document import Block, Document
from meta_agent_rag.retrieval.passage import Passage
from tests.chunked import DOCUMENTS, PROSE, document, require_whole

CHUNKERS = list(discover_chunkers().values())
OPTIONS = ChunkingOptions(characters=120, overlap=30, token_limit=24)
"""Without an encoder, tokens are words."""
ODD = {
    "no spaces": "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3002" * 40,
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd. " * 40,
    "joined emoji": "\U0001f469\u200d\U0001f469\u200d\U0001f467 " * 60,
    "combining marks": "e\u0301a\u0308 " * 60,
    "separators": "one\u2028two\u2029three\u00a0four\u200bfive\x00six. " * 20,
    "one long word": "x" * 2000,
}
every_chunker = pytest.mark.parametrize("chunker", CHUNKERS, ids=lambda chunker: chunker.name)


def cut(chunker: Chunker, text: Document, doc_id: str = "d") -> list[Passage]:
    return list(chunker.prepare(OPTIONS).cut(text, doc_id))


def test_names_are_unique_and_registered() -> None:
    (chunker, *_) = CHUNKERS
    with pytest.raises(DuplicateNameError, match=repr(chunker.name)):
        by_name([chunker, chunker], "chunkers")
    with pytest.raises(UnknownNameError, match=r"no chunker 'saw'; choose from: .*characters, .*sentence"):
        prepared(ChunkingOptions(chunker="saw"))


@every_chunker
def test_the_prepared_name_begins_with_the_chunkers(chunker: Chunker) -> None:
    """A corpus records it: passages of other parameters are cut again."""
    chunking = prepared(ChunkingOptions(chunker=chunker.name))
    assert chunking.name == chunker.name or chunking.name.startswith(f"{chunker.name}-")


@every_chunker
@given(blocks=DOCUMENTS)
def test_every_text_is_covered_in_order_by_exact_spans(chunker: Chunker, blocks: list[tuple[str, str | None]]) -> None:
    text = document(*blocks)
    passages = cut(chunker, text)
    require_whole(text, passages)
    assert passages == cut(chunker, text), "the same document gives the same passages"


@every_chunker
@pytest.mark.parametrize("written", ODD.values(), ids=ODD)
def test_odd_unicode_is_kept(chunker: Chunker, written: str) -> None:
    text = document((written, None), (PROSE, "A"))
    passages = cut(chunker, text)
    assert passages
    require_whole(text, passages)


@every_chunker
def test_a_passage_names_its_document_section_and_pages(chunker: Chunker) -> None:
    blocks = [Block(text=PROSE.strip(), section=name, page=page) for page, name in enumerate(("Danube", "Rhine"), 1)]
    passages = cut(chunker, Document(title="Rivers", kind="pdf", blocks=tuple(blocks), pages=2), "rivers")
    assert {(passage.doc_id, passage.title) for passage in passages} == {("rivers", "Rivers")}
    assert {(passage.section, passage.start_page, passage.end_page) for passage in passages} == {
        ("Danube", 1, 1), ("Rhine", 2, 2),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "size", "most"),
    [
        ("characters", lambda passage: len(passage.text), OPTIONS.characters),
        ("sentence", lambda passage: len(passage.searchable().split()), OPTIONS.token_limit),
    ],
    ids=["characters", "sentence"],
)
def test_no_passage_exceeds_the_limit_of_its_chunker(name: str, size: Callable[[Passage], int], most: int) -> None:
    chunker = discover_chunkers()[name]
    for written in (PROSE * 20, *ODD.values()):
        passages = cut(chunker, document((written, None)))
        assert max(size(passage) for passage in passages) <= most

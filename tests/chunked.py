"""Documents to split into passages, and what every chunker keeps of them."""

from collections.abc import Sequence

from hypothesis import strategies as st

from meta_agent_rag.ingestion.document import Block, Document
from meta_agent_rag.retrieval.passage import Passage

PROSE = "The river rises in the hills. It is long, cold and deep. Dr. Holt measured it in 1901. Nobody did so again. "
ARBITRARY_TEXT = st.text(alphabet=st.sampled_from("ab \n\t.!?。\"')x\u00a0é🦆\u2028"), max_size=300) | st.text(
    max_size=120
)
DOCUMENTS = st.lists(st.tuples(ARBITRARY_TEXT, st.sampled_from([None, "A", "B"])), max_size=8)


def document(*blocks: tuple[str, str | None], title: str = "Rivers") -> Document:
    kept = [Block(text=text.strip(), section=section) for text, section in blocks if text.strip()]
    return Document(title=title, kind="text", blocks=tuple(kept))


def require_whole(text: Document, passages: Sequence[Passage]) -> None:
    """Check that spans are exact and ordered, ids are unique, and only white space is left out."""
    covered: set[int] = set()
    earlier = (-1, -1)
    for passage in passages:
        assert passage.span is not None
        start, end = passage.span
        assert passage.text == text.text[start:end]
        assert passage.text == passage.text.strip() != ""
        assert earlier[0] < start
        assert earlier[1] <= end
        earlier = (start, end)
        covered.update(range(start, end))
    assert all(character.isspace() for place, character in enumerate(text.text) if place not in covered)
    assert len({passage.id for passage in passages}) == len(passages)

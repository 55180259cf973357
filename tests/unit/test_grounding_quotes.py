"""What of a quote is in the passages, and claims that copy sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.claims import claims
from meta_agent_rag.grounding.quotes import as_written, copies_sentences, is_verbatim
from meta_agent_rag.grounding.support.rules import supports
from meta_agent_rag.retrieval.passage import Found, Passage

TEXT = (
    "Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt. Nobody says that she left the city. "
    "She won two prizes in 1912! Later she moved."
)
WHOLE = f"Low Tide\n{TEXT}"


@pytest.mark.parametrize(
    ("claim", "copies"),
    [
        ("Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt.", True),
        ("Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt", True),
        ("She won two prizes in 1912!", True),
        ("She won two prizes in 1912! Later she moved.", True),
        ("Low Tide: A Life at Sea is a 2004 film", False),
        ("She left the city.", False),
        ("she left the city", False),
        ("Life at Sea is a 2004 film by the Oslo-based director Mira Holt.", False),
        ("", False),
    ],
)
def test_whole_sentences_are_copied_or_not(claim: str, copies: bool) -> None:
    assert copies_sentences(claim, TEXT) is copies


def test_a_copied_sentence_is_supported_whatever_its_names_could_mean() -> None:
    found = [Found(passage=Passage(id="a", doc_id="a", title="Low Tide", text=TEXT), score=1.0)]
    said = claims(f"{TEXT.partition('Nobody')[0].strip()} [1]")
    (support,) = supports(said, found)
    assert (support.standing, support.supported, support.passage_id, support.number) == ("supported", True, "a", 1)
    (part,) = supports(claims("She left the city [1]."), found)
    assert part.standing != "supported"


@pytest.mark.parametrize(
    ("quote", "kept"),
    [
        ("Later she moved.", ("Later she moved.",)),
        (f'<passage n="2" title="Low Tide">{TEXT}</passage>', (TEXT,)),
        ("Nobody says that she left the city. She sailed to Bergen with fourteen crates of film.", (
            "Nobody says that she left the city.",
        )),
        ("She sailed to Bergen with fourteen crates of film. It was never found again there.", ()),
        ("Later she moved. So he said.", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_what_of_a_quote_is_kept(quote: str, kept: tuple[str, ...]) -> None:
    assert as_written(quote, [WHOLE], [TEXT]) == kept


@given(st.text(max_size=80), st.text(max_size=200))
def test_what_is_kept_is_verbatim(quote: str, text: str) -> None:
    assert all(is_verbatim(part, [text]) for part in as_written(quote, [text], [text]))

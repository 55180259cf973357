"""Which parts of a quote occur in the passages, and claims that copy sentences."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.claims import claims
from meta_agent_rag.grounding.quotes import as_written, is_verbatim
from meta_agent_rag.grounding.support.rules import supports
from meta_agent_rag.grounding.support.sources import Source, read_sources
from meta_agent_rag.retrieval.passage import Found, Passage

TEXT = (
    "Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt. Nobody says that she left the city. "
    "She won two prizes in 1912! Later she moved."
)
WHOLE = f"Low Tide\n{TEXT}"


def source(text: str) -> Source:
    (read,) = read_sources([Passage(id="a", doc_id="a", title="Low Tide", text=text)], [1])
    return read


@pytest.mark.parametrize(
    ("claim", "copies"),
    [
        ("Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt.", True),
        ("Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt", True),
        ("She won two prizes in 1912!", True),
        ("She won two prizes in 1912! Later she moved.", True),
        ("Low Tide: A Life at Sea is a 2004 film", False),
        ("She left the city in 1912.", False),
        ("Later she moved.", False),
        ("Life at Sea is a 2004 film by the Oslo-based director Mira Holt.", False),
        ("", False),
    ],
)
def test_copied_whole_sentences_are_recognised(claim: str, copies: bool) -> None:
    assert source(TEXT).is_copied_by(claim) is copies


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("5 million people died in the war.", "About 2.5 million people died in the war."),
        ("The company made a profit of $5", "The company made a profit of $5.2 billion in 1999."),
        ("The vote took place on 3", "The vote took place on 3.10.1990."),
        ("Smith was convicted of the fraud.", "No court ever found that Mr. Smith was convicted of the fraud."),
        ("Army lost the battle of Vantry.", "Few historians think the U.S. Army lost the battle of Vantry."),
        ("Answers was closed in the year 2021.", "Nobody said that Yahoo! Answers was closed in the year 2021."),
        ("5 is the best perfume of all.", "Nobody said that Chanel No. 5 is the best perfume of all."),
        ("Members get a discount of five percent.", "Not if, e.g. Members get a discount of five percent."),
        ("Damage by water in the cellar.", "The policy does not cover:\n1. Damage by water in the cellar.\n2. Theft."),
        ("Visitors may park in the yard.", "Prohibited: 1. Visitors may park in the yard. 2. Fires."),
        ("It is a masterpiece of cinema.", 'He wrote: "Go now. It is a masterpiece of cinema. Buy." Others disagreed.'),
        ("She was found guilty of it.", "She was found guilty of it? No, she was acquitted."),
        ("The earth is flat, my dear friends!", '"The earth is flat, my dear friends!" is what liars say.'),
        ("The treaty was signed by Dr", "The treaty was signed by Dr. Who."),
    ],
)  # fmt: skip
def test_part_of_a_sentence_is_not_a_copy(claim: str, text: str) -> None:
    assert not source(text).is_copied_by(claim)


def test_a_copied_sentence_may_begin_with_a_quoted_title() -> None:
    text = 'Ada wrote everything. "Low Tide" is the first song of the album.'
    assert source(text).is_copied_by('"Low Tide" is the first song of the album.')


@pytest.mark.parametrize("text", ["." + '"' * 40_000 + "x Ada left the town then.", ". A b " * 8_000, "1. " * 7_000])
def test_adversarial_texts_are_checked_quickly(text: str) -> None:
    read = source(text)
    started = time.perf_counter()
    read.is_copied_by("A b. A b. A b. A b. A b.")
    assert time.perf_counter() - started < 2.0


def test_a_copied_sentence_is_supported_despite_ambiguous_names() -> None:
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
def test_the_verbatim_parts_of_a_quote_are_kept(quote: str, kept: tuple[str, ...]) -> None:
    assert as_written(quote, [WHOLE], [TEXT]) == kept


@given(st.text(max_size=80), st.text(max_size=200))
def test_kept_parts_are_verbatim(quote: str, text: str) -> None:
    assert all(is_verbatim(part, [text]) for part in as_written(quote, [text], [text]))

"""Claims that rest on two passages: which passages the critic may quote, and what is then cited."""

import pytest

from meta_agent_rag.grounding.claims import claims
from meta_agent_rag.grounding.marking import marked
from meta_agent_rag.grounding.support.confirmed import confirmed
from meta_agent_rag.grounding.support.neighbours import neighbours
from meta_agent_rag.grounding.support.rules import supports
from meta_agent_rag.grounding.support.sources import read_sources
from meta_agent_rag.grounding.support.statement import read
from meta_agent_rag.grounding.support.verdict import Support
from meta_agent_rag.retrieval.passage import Found, Passage

PASSAGES = tuple(
    Passage(id=title, doc_id=title, title=title, text=text)
    for title, text in (
        ("Tide", "Tide is a 1974 film directed by Ann Bell. It won 3 prizes."),
        ("Ann Bell", "Ann Bell (born 9 May 1931) was a director. She was born in Tromsvik."),
        ("Jon Weil", "Jon Weil made thrillers. He was born in Hallstad. It took him 94 weeks to learn Latin."),
        ("Glossary", "A director is whoever signs the contract with the studio."),
        ("Tide, a review", "Nobody liked the film at first."),
    )
)
NONE = Support(score=0.0, passage_id=None, supported=False)


def confirm(claim: str, *words: str) -> Support:
    (said,) = claims(claim)
    cited = said.marks
    beside = neighbours(said.text, cited, PASSAGES)
    rest = [number for number in range(1, len(PASSAGES) + 1) if number not in (*cited, *beside)]
    return confirmed(
        NONE,
        read(said.text, "en"),
        words,
        read_sources(PASSAGES, cited),
        read("", "en"),
        linked=read_sources(PASSAGES, beside),
        others=read_sources(PASSAGES, rest),
    )


def test_passages_are_connected_by_title_or_document() -> None:
    assert neighbours("Its director was born in Tromsvik.", [1], PASSAGES) == (2, 5)
    assert neighbours("Jon Weil was born in Hallstad.", [1], PASSAGES) == (2, 3, 5)
    assert neighbours("Jon Weil was born in Hallstad.", [3, 9], PASSAGES) == ()
    parts = [Passage(id=str(number), doc_id="handbook", title="Handbook", text="...") for number in range(2)]
    assert neighbours("It is so.", [1], parts) == (2,)


def test_a_quote_from_a_connected_passage_counts_and_is_cited_too() -> None:
    text = "The director of Tide, Ann Bell, was born in Tromsvik [1]."
    found = confirm(text, "Tide is a 1974 film directed by Ann Bell.", "She was born in Tromsvik.")
    assert (found.supported, found.number, found.also) == (True, 1, (2,))
    assert marked(text, claims(text), [found]).endswith("[1]. [2]")


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("Ann Bell was born in Hallstad [2].", ["He was born in Hallstad."]),
        ("Tide took 94 weeks [1].", ["It took him 94 weeks to learn Latin."]),
        ("Ann Bell was born in Tromsvik [3].", ["Tromsvik"]),
    ],
)
def test_quotes_about_another_entity_and_fragments_do_not_count(claim: str, words: list[str]) -> None:
    assert not confirm(claim, *words).supported


def test_an_unconnected_passage_about_the_same_entity_counts() -> None:
    found = confirm("Its director, Ann Bell, signs the contract with the studio [1].",
        "Tide is a 1974 film directed by Ann Bell.", "A director is whoever signs the contract with the studio.",
    )  # fmt: skip
    assert (found.supported, found.also) == (True, (4,))


@pytest.mark.parametrize(
    ("answer", "standing"),
    [
        ("Ann Bell was born in Hallstad [2].", "open"),
        ("Ann Bell was born in Turin [2].", "refuted"),
        ("Tide took 94 weeks [1].", "refuted"),
        ("Tide was directed by the 43 year old Ann Bell [1].", "open"),
    ],
)
def test_names_may_come_from_any_passage_but_figures_only_from_connected_ones(answer: str, standing: str) -> None:
    found = [Found(passage=one, score=1.0) for one in PASSAGES]
    assert supports(claims(answer), found)[0].standing == standing

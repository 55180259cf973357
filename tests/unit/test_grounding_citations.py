"""Citation marks, citations and their styles."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_agent_rag.grounding.citations import Citation, Cited, cite, removed_marks
from meta_agent_rag.grounding.marks import marks
from meta_agent_rag.retrieval.passage import Found, Passage

LIFE = (
    "Mira Holt (1912\u20131990) was a Norwegian director. She was born in Oslo, where her father built bridges.[3] "
    "She left the city when she was nineteen years old and sailed to Bergen with two friends. "
    "There she directed \u201cThe Salt Road\u201d in 1950, which won three prizes at the first festival of the coast."
)
DOCUMENT = f"Contents\n\n{LIFE}\n\nIndex"
ROAD = "The Salt Road is a drama film."


def found(id_: str, text: str, title: str, pages: tuple[int, int] | None = None, section: str | None = None) -> Found:
    start, end = pages or (None, None)
    at = DOCUMENT.find(text)
    passage = Passage(
        id=id_,
        doc_id=f"doc-{id_}",
        title=title,
        text=text,
        section=section,
        start_page=start,
        end_page=end,
        span=(at, at + len(text)) if at >= 0 else None,
    )
    return Found(passage=passage, score=0.5, dense=0.8)


PASSAGES = [found("life", LIFE, "Mira Holt", (3, 3), "Early  life"), found("road", ROAD, "The Salt Road")]


def written(answer: str, style: str = "page", quotes: tuple[str, ...] = ()) -> Cited:
    return cite(answer, PASSAGES, quotes, style)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Oslo [1].", [(1,)]),
        ("Oslo [1, 3] and [2;4].", [(1, 3), (2, 4)]),
        ("Oslo [1][3] [1].", [(1, 3)]),
        ("Oslo [2-4] or [2\u20133].", [(2, 3, 4), (2, 3)]),
        ("Oslo[1].", [(1,)]),
        ("Oslo \u30101\u3011.", [(1,)]),
        ("[1] Oslo", [(1,)]),
        ("\u5cf6\u306b\u7740\u304d\u307e\u3059[2][4]\u3002", [(2, 4)]),
        ("array[3] is", []),
        ("[sic] [a] [] [ ] [1a] [Mira Holt, p.3] [-1]", []),
        ("in [1912] and [1912-1920]", []),
        ("[1](https://example.org)", []),
        ("a [2]fold rise", []),
        ("[1-999999999]", [tuple(range(1, 52))]),
    ],
)
def test_citation_marks_are_parsed(text: str, numbers: list[tuple[int, ...]]) -> None:
    assert [mark.numbers for mark in marks(text)] == numbers


def test_a_copied_bracket_is_not_a_mark() -> None:
    assert marks("Her father built bridges.[3]", [LIFE]) == ()
    assert marks("Her father built many bridges.[3]", [LIFE])
    assert [mark.numbers for mark in marks("Her father built bridges.[3] [1][2]", [LIFE])] == [(1, 2)]
    assert marks("It is cells[2].", ["see cells[2] there"]) == ()
    assert marks("It is cells[2].", ["see cells there"])


@pytest.mark.parametrize(
    ("answer", "shown", "removed"),
    [
        ("Born in Oslo [1].", "Born in Oslo [Mira Holt, p.3].", 0),
        ("Both [1, 2] and [1][2].", "Both [Mira Holt, p.3] [The Salt Road] and [Mira Holt, p.3] [The Salt Road].", 0),
        ("Born in Oslo [7].", "Born in Oslo.", 1),
        ("Born [7, 0] in Oslo [1][9].", "Born in Oslo [Mira Holt, p.3].", 3),
        ("Oslo ([7]).", "Oslo.", 1),
        ("[7]", "", 1),
        ("Nothing [sic] in [1912].", "Nothing [sic] in [1912].", 0),
    ],
)
def test_marks_become_citations_or_are_removed(answer: str, shown: str, removed: int) -> None:
    assert written(answer).text == shown
    assert removed_marks(answer, PASSAGES) == removed


COUNCIL = "Empty heading\n\nCouncil\n\nOn 5 May the\ncouncil met."


def test_an_excerpt_is_written_in_one_line() -> None:
    over = found("over", COUNCIL, "Minutes", (2, 3), "Empty\n heading")
    cited = cite("The council met [1].", [over], [], "source")
    excerpt = "Empty heading Council On 5 May the council met."
    assert cited.text == f'The council met [Source: Minutes, Empty heading (Page 2-3) - "{excerpt}"].'
    (citation,) = cited.citations
    assert citation.snippet == COUNCIL


def resolves(citation: Citation) -> None:
    """Check that the snippet is whole words of the passage, and that the span lies within the passage."""
    item = next(item for item in PASSAGES if item.passage.id == citation.passage_id)
    text = item.passage.text
    at = text.find(citation.snippet)
    assert at >= 0
    words, all_words = citation.snippet.split(), text.split()
    assert any(all_words[start : start + len(words)] == words for start in range(len(all_words)))
    assert min(30, len(all_words)) <= len(words) <= 50
    assert (citation.span is None) == (item.passage.span is None)
    if citation.span is not None:
        assert DOCUMENT[slice(*citation.span)] in text
    assert citation.scores.dense == item.dense


PIECES = [
    "Oslo",
    "bridges",
    " ",
    ".",
    "\n",
    "[1]",
    "[2]",
    "[1, 2]",
    "[9]",
    "[1912]",
    "([9])",
    "[sic]",
    "She left the city",
]


@settings(max_examples=150, deadline=None)
@given(
    answer=st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    style=st.sampled_from(["page", "source", "title"]),
    words=st.tuples(st.integers(0, 40), st.integers(1, 60)),
)
def test_every_citation_resolves(answer: str, style: str, words: tuple[int, int]) -> None:
    quote = " ".join(LIFE.split()[words[0] : sum(words)])
    cited = written(answer, style, (quote,))
    for citation in cited.citations:
        resolves(citation)
    assert len(set(cited.citations)) == len(cited.citations)
    removed = removed_marks(answer, PASSAGES)
    assert not removed or "[9]" in answer
    assert removed or cited.citations or cited.text == answer
    # an invented number remains only if its brackets are part of a word
    assert "[9]" not in cited.text or re.search(r"\w\[|\][a-z]", answer)


def test_the_span_covers_the_quote() -> None:
    (citation,) = written("She was born in Oslo [1].", quotes=("born  in Oslo,", "nineteen years old")).citations
    assert citation.span is not None
    assert DOCUMENT[slice(*citation.span)] == "born in Oslo,"
    (typographic,) = written("The Salt Road [1].", quotes=('directed "The Salt Road" in 1950',)).citations
    assert typographic.span is not None
    assert DOCUMENT[slice(*typographic.span)] == "directed \u201cThe Salt Road\u201d in 1950"


def test_a_claim_without_a_matching_quote_cites_the_best_sentences() -> None:
    (citation,) = written("It won prizes at a festival [1].", quotes=("was a Norwegian",)).citations
    assert citation.span == PASSAGES[0].passage.span
    assert "three prizes at the first festival" in citation.snippet

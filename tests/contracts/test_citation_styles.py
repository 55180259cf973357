"""The contract of every citation style, whichever file it comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.discovery import by_name
from meta_agent_rag.errors import DuplicateNameError, UnknownNameError
from meta_agent_rag.grounding.citation import Citation, Scores, Style
from meta_agent_rag.grounding.marks import marks
from meta_agent_rag.grounding.styles import chosen, discover_styles

STYLES = list(discover_styles().values())
TEXT = st.text(max_size=40)
PAGE = st.none() | st.integers(1, 2000)
CITATIONS = st.builds(
    Citation,
    doc_id=st.text(min_size=1, max_size=20).filter(str.strip),
    passage_id=TEXT,
    title=TEXT,
    page=PAGE,
    last_page=PAGE,
    section=st.none() | TEXT,
    span=st.none() | st.just((3, 9)),
    snippet=TEXT,
    scores=st.just(Scores(score=0.5)),
)
every_style = pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)


def citation(
    title: str = "The Salt Road", section: str | None = None, page: int | None = None, last_page: int | None = None
) -> Citation:
    return Citation(
        doc_id="road", passage_id="road-1", title=title, page=page, last_page=last_page, section=section, span=None,
        snippet="It was built in 1850.", scores=Scores(score=0.5),
    )  # fmt: skip


def test_styles_are_discovered() -> None:
    assert {"page", "source", "title"} <= set(discover_styles())


def test_names_are_unique_and_registered() -> None:
    (style, *_) = STYLES
    with pytest.raises(DuplicateNameError, match=repr(style.name)):
        by_name([style, style], "citation styles")
    with pytest.raises(UnknownNameError, match=r"no citation style 'footnote'; choose from: page, .*source, .*title"):
        chosen("footnote")


@every_style
def test_a_style_says_what_it_shows(style: Style) -> None:
    assert style.description.strip()
    assert not style.description.endswith("."), "it continues a sentence"


@every_style
def test_the_document_is_named(style: Style) -> None:
    assert "The Salt Road" in style.written(citation())
    assert "road" in style.written(citation(title=" \n")), "by its id if it has no title"
    assert style.written(citation(title="Salt Road")) != style.written(citation(title="Amber Road"))


@every_style
@given(cited=CITATIONS)
def test_any_citation_is_written_in_brackets_and_the_same_twice(style: Style, cited: Citation) -> None:
    written = style.written(cited)
    assert written == style.written(cited)
    assert written.startswith("[")
    assert written.endswith("]")
    assert written[1:-1].strip()


@every_style
def test_a_written_citation_is_not_a_mark(style: Style) -> None:
    """Marks are numbers in brackets; a citation read as one would be replaced again."""
    assert marks(f"It is old {style.written(citation(section='Life', page=3))}.") == ()


@pytest.mark.parametrize(
    ("name", "without", "one_page", "two_pages", "with_section"),
    [
        ("title", *["[The Salt Road]"] * 4),
        ("page", "[The Salt Road]", "[The Salt Road, p.3]", "[The Salt Road, p.3-4]", "[The Salt Road, p.3]"),
        (
            "source",
            '[Source: The Salt Road - "It was built in 1850."]',
            '[Source: The Salt Road (Page 3) - "It was built in 1850."]',
            '[Source: The Salt Road (Page 3-4) - "It was built in 1850."]',
            '[Source: The Salt Road, Early life (Page 3) - "It was built in 1850."]',
        ),
    ],
    ids=["title", "page", "source"],
)
def test_page_and_section_are_shown_as_documented(
    name: str, without: str, one_page: str, two_pages: str, with_section: str
) -> None:
    style = chosen(name)
    assert style.written(citation()) == without
    assert style.written(citation(page=3)) == one_page
    assert style.written(citation(page=3, last_page=4)) == two_pages
    assert style.written(citation(page=3, section="Early  life")) == with_section

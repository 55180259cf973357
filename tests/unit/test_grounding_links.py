"""Images and links in an answer: those found in no passage are removed, everything else is kept."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from meta_agent_rag.grounding.links import without_links

SOURCE = "The list is at https://a.example/list.html, says the office (www.office.example), with <b>care</b>."
FRAGMENTS = (
    *("<!", "<?", "<script", "</", "<", ">", "<im", "<img>", "<a href=x>", "</a>", '<video src="//evil.example/v">'),
    *("![x](u)", "!", "[1]: ", "[", "]", "(", ")", "[x]", "[x]: ", "[1]", "\n", "\n\n", " ", '"', "a"),
    *("data:image/png;base64,AA", "//evil.example/?q=s", "https://evil.example/p.png", "www.evil.example"),
    *("javascript:alert(1)", "mailto:a@evil.example", "g src=//evil.example>", "https://a.example/list.html"),
)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("Oslo [1].", "Oslo [1]."),
        ("See https://a.example/list.html [1].", "See https://a.example/list.html [1]."),
        ("See **https://a.example/list.html**, or _https://a.example/list.html_.", None),
        ("It is https://a.example/list.html[1].", None),
        ("“https://a.example/list.html”—as they say", None),
        ("See [the list](https://a.example/list.html).", None),
        ("See [the list](https://evil.example/?q=1).", "See [the list]."),
        ("See [a [b] c](//evil.example/x).", "See [a [b] c]."),
        ("See [1](https://evil.example/?q=1).", "See [1]."),
        ("See [it](//evil.example/q).", "See [it]."),
        ("See [it][x].\n\n[x]: //evil.example/?q=s", "See [it][x].\n\n"),
        ("As said in [1]:\nOslo [1].", None),
        ("Oslo ![x](https://evil.example/p.png) [1].", "Oslo [x] [1]."),
        ("!![x](u.png)[data](//evil.example/p?q=s)", "[x][data]"),
        ("They founded Yahoo![1]", None),
        ('Oslo <img src="https://evil.example/p.png"> [1].', "Oslo [1]."),
        ("Oslo <im<img>g src=//evil.example/p>.", "Oslo."),
        ("Oslo <video src=//evil.example/p>.", "Oslo."),
        ("With <b>care</b> and 3 < 5 > 2.", None),
        ("A <!doctype, and <a <b>c", "A < !doctype, and < a < b>c"),
        (
            "The tag <script loads code. It was added in 1995 [1].",
            "The tag < script loads code. It was added in 1995 [1].",
        ),
        ("Oslo. HTTPS://EVIL.example/?q=secret", "Oslo."),
        ("Oslo, see www.evil.example/q.", "Oslo, see."),
        ("Oslo, see //evil.example/q.", "Oslo, see."),
        ("Ask www.office.example.", None),
        ("https://evil.example/", ""),
        ("Take array[3](second row) of data: it holds 5.", None),
        ("The ratio is 3:2, profile:default and logfile:app, and/or // not; data:2020.", None),
    ],
)
def test_links_and_images_are_removed_unless_in_a_passage(answer: str, shown: str | None) -> None:
    assert without_links(answer, [SOURCE]) == (answer if shown is None else shown)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("See [x](https:&#47;&#47;evil.example/(q)).", "See [x]."),
        (r"See [x](https:\/\/evil.example/(q)).", "See [x]."),
        ("See [a].\n\n> [a]: https:&#47;&#47;evil.example/q", "See [a].\n\n"),
        ("See https:&#x2F;&#x2F;evil.example.", "See."),
        (r"See https://a.example/li\st.html, or \[1\] and AT&T; 5 \* 3 &lt; 20.", None),
        ("- [Note]: see the river\n- [1]: Oslo", None),
    ],
)
def test_addresses_are_read_as_a_page_shows_them(answer: str, shown: str | None) -> None:
    sources = [SOURCE, r"https://a.example/li\st.html"]
    assert without_links(answer, sources) == (answer if shown is None else shown)


ADDRESSES = (
    "https://evil.example/(q)",
    "//evil.example/q",
    "/evil/(a(b))?q",
    "javascript:alert(1)",
    "evil.html",
    "x#y",
)
PLACES = (
    *("[x]({})", '[x](  {} "a (title)")', "[x](\n{})", "[x](<{}>)", "![x]({})", "[![1](x)]({})", "![1]({})", "![1][1]"),
    *("[x][a] [1] ![a]", "\n\n{}[a]: {}", "\n\n{}[1]: {} 'title'", "\r{}[a]: <{}>", "\n\n{}[a\n]:\n{}{}"),
)


@st.composite
def encoded(draw: st.DrawFn) -> str:
    """An address with some of its characters as references or escapes."""
    forms = ("{0}", "{0}", "&#{1};", "&#x{1:x};", "\\{0}")
    return "".join(draw(st.sampled_from(forms)).format(one, ord(one)) for one in draw(st.sampled_from(ADDRESSES)))


@st.composite
def linked(draw: st.DrawFn) -> str:
    """A place for a link; all gaps but the last are for the markers of quotations and lists."""
    place = draw(st.sampled_from(PLACES))
    gaps = place.count("{}")
    markers = [draw(st.sampled_from(("", "> ", "- ", "1. ", "> - ", "  "))) for _ in range(gaps - 1)]
    return place.format(*markers, *([draw(encoded())] if gaps else []))


@settings(max_examples=300)
@given(st.lists(st.one_of(linked(), st.sampled_from((" ", "\n\n", "(", ")", "[x]", "\\"))), max_size=5).map("".join))
def test_no_disguised_address_is_followed(answer: str) -> None:
    check_page(without_links(answer, [SOURCE]))


@settings(max_examples=300)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_no_answer_makes_a_page_load_or_link_to_foreign_addresses(answer: str) -> None:
    check_page(without_links(answer, [SOURCE]))


def check_page(shown: str) -> None:
    """The page loads nothing, and links only to what is in the source."""
    page = MarkdownIt("commonmark").render(shown)
    tokens = [part for token in MarkdownIt("commonmark").parse(shown) for part in (token, *(token.children or ()))]
    assert not [token for token in tokens if token.type == "image"], page
    followed = {str(token.attrGet("href")) for token in tokens if token.type == "link_open"}
    assert not [address for address in followed if re.search("[:/.#]", address) and address not in SOURCE], page
    assert not [token for token in tokens if token.type.startswith("html") and token.content.lower() not in SOURCE], (
        page
    )
    assert "evil.example" not in page or "://evil" not in page


@given(st.text(max_size=200))
def test_a_text_without_links_is_unchanged(answer: str) -> None:
    if not any(sign in answer for sign in ("[", "<", ":", "//", "www.", "WWW.")):
        assert without_links(answer, []) == answer

"""Images and links in an answer: those found in no passage are removed, everything else is kept."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from meta_agent_rag.grounding.links import without_links

SOURCE = "The list is at https://a.example/list.html, says the office (www.office.example), with <b>care</b>."
FRAGMENTS = (
    *("<!", "<?", "<script", "</"),
    *(
        "![x](u)",
        "!",
        "[",
        "]",
        "(",
        ")",
        "[x]",
        "[x]: ",
        "[1]",
        "\n",
        "\n\n",
        " ",
        "<",
        ">",
        '"',
        "a",
        "data:image/png;base64,AA",
    ),
    *(
        "//evil.example/?q=s",
        "https://evil.example/p.png",
        "www.evil.example",
        "javascript:alert(1)",
        "mailto:a@evil.example",
    ),
    *(
        "<im",
        "<img>",
        "g src=//evil.example>",
        '<video src="//evil.example/v">',
        "<a href=x>",
        "</a>",
        "https://a.example/list.html",
    ),
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
        ("See [it][x].\n\n[x]:\n/p.html?q=s", "See [it][x].\n\n[x] :\n/p.html?q=s"),
        ("[x]: \n[x]: \n[x]", "[x] : \n[x]: \n[x]"),
        ("As said in [1]:\nOslo [1].", None),
        ("Oslo ![x](https://evil.example/p.png) [1].", "Oslo [x] [1]."),
        ("!![x](u.png)[data](//evil.example/p?q=s)", "[x][data]"),
        ("They founded Yahoo![1]", None),
        ('Oslo <img src="https://evil.example/p.png"> [1].', "Oslo [1]."),
        ("Oslo <im<img>g src=//evil.example/p>.", "Oslo."),
        ("Oslo <video src=//evil.example/p>.", "Oslo."),
        ("With <b>care</b> and 3 < 5 > 2.", None),
        ("A <!doctype, and <a <b>c", "A < !doctype, and < a <b>c"),
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


@settings(max_examples=1_000)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_no_answer_makes_a_page_load_or_link_to_foreign_addresses(answer: str) -> None:
    shown = without_links(answer, [SOURCE])
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

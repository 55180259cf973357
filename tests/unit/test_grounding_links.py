"""Pictures and addresses in an answer: what no passage holds is taken out, everything else stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.links import without_links

SOURCE = "The list is at https://a.example/list.html, says the office (www.office.example)."


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("Oslo [1].", "Oslo [1]."),
        ("See https://a.example/list.html [1].", "See https://a.example/list.html [1]."),
        ("See [the list](https://a.example/list.html).", "See [the list](https://a.example/list.html)."),
        ("See [the list](https://evil.example/?q=1).", "See the list."),
        ("See [1](https://evil.example/?q=1).", "See [1]."),
        ("See [it](//evil.example/q).", "See it."),
        ("Oslo ![x](https://evil.example/p.png) [1].", "Oslo [1]."),
        ("Oslo ![x][logo] [1].", "Oslo [1]."),
        ('Oslo <img src="https://evil.example/p.png"> [1].', "Oslo [1]."),
        ("Oslo. HTTPS://EVIL.example/?q=secret", "Oslo."),
        ("Oslo, see www.evil.example/q.", "Oslo, see."),
        ("Ask www.office.example.", "Ask www.office.example."),
        ("https://evil.example/", ""),
        ("Take array[3](second row) of data: it holds 5.", "Take array[3](second row) of data: it holds 5."),
        ("The ratio is 3:2 and the file: none.", "The ratio is 3:2 and the file: none."),
    ],
)
def test_answers(answer: str, shown: str) -> None:
    assert without_links(answer, [SOURCE]) == shown


@given(st.text(alphabet="ab []()!<>img:/.http s", max_size=80))
def test_wild_texts_only_lose(answer: str) -> None:
    shown = without_links(answer, [])
    assert len(shown) <= len(answer)
    assert "http://" not in shown


@given(st.text(max_size=200))
def test_a_text_without_addresses_stays(answer: str) -> None:
    if not any(sign in answer for sign in ("[", "<", ":", "www.", "WWW.")):
        assert without_links(answer, []) == answer

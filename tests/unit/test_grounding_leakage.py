"""Phrases that refer to knowledge outside the documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.leakage import general_phrases, leaks

PLAIN_WORDS = st.lists(st.sampled_from(["mira", "sailed", "1912", "oslo,", "bridge;", "(west)"]), max_size=6)


@given(phrase=st.sampled_from(general_phrases()), before=PLAIN_WORDS, after=PLAIN_WORDS)
def test_every_phrase_is_found_at_any_position(phrase: str, before: list[str], after: list[str]) -> None:
    answer = " ".join([*before, phrase, *after])
    assert phrase in leaks(answer, [])
    assert leaks(" ".join([*before, *after]), []) == ()


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("She leaves (in\u00a0the\n  novel).", True),
        ("She leaves in the **novel**.", True),
        ("She leaves in the \u201cnovel\u201d.", True),
        ("She leaves in the no\u00advel.", True),
        ("IN THE NOVEL", True),
        ("in the novella", False),
        ("in the novel-writing trade", False),
        ("in the. novel", False),
        ("", False),
    ],
)
def test_whole_words_match_whatever_their_marks(answer: str, found: bool) -> None:
    assert leaks(answer, []) == (("in the novel",) if found else ())


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_phrase_of_a_verified_quote_is_the_documents(before: str, after: str) -> None:
    quote = f"{before} which in the novel burns {after}"
    assert leaks(quote, []) == ("in the novel",)
    assert leaks(quote, [quote]) == ()

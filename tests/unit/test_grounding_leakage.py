"""Phrases that refer to knowledge outside the documents."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.errors import DataFileError
from meta_agent_rag.grounding.leakage import general_phrases, leaks, phrases_with

NOVEL = ["in the novel"]
PLAIN_WORDS = st.lists(st.sampled_from(["mira", "sailed", "1912", "oslo,", "bridge;", "(west)"]), max_size=6)


@given(phrase=st.sampled_from(general_phrases()), before=PLAIN_WORDS, after=PLAIN_WORDS)
def test_every_phrase_is_found_at_any_position(phrase: str, before: list[str], after: list[str]) -> None:
    answer = " ".join([*before, phrase, *after])
    assert phrase in leaks(answer, [], general_phrases())
    assert leaks(" ".join([*before, *after]), [], general_phrases()) == ()


def test_the_list_covers_common_wordings() -> None:
    named = {"in the series", "in the novel", "in the book", "it can be assumed", "based on my knowledge"}
    assert named <= set(general_phrases())
    assert len(general_phrases()) > 60
    assert len(set(general_phrases())) == len(general_phrases())


@pytest.mark.parametrize(
    "answer",
    [
        "In the Novel she leaves.",
        "She leaves (in\u00a0the\n  novel).",
        "She leaves in the **novel**.",
        "She leaves in the \u201cnovel\u201d.",
        "_In the novel_, she leaves.",
        "She leaves in the no\u00advel.",
        "IN THE NOVEL",
        "in the novel's last part",
    ],
)
def test_case_white_space_and_punctuation_do_not_hide_a_phrase(answer: str) -> None:
    assert leaks(answer, [], NOVEL) == ("in the novel",)


@pytest.mark.parametrize(
    "answer",
    [
        "in the novella",
        "within the novel",
        "in the novel-writing trade",
        "in the. novel",
        "the novel",
        "",
        "main the novel",
    ],
)
def test_only_whole_words_match(answer: str) -> None:
    assert leaks(answer, [], NOVEL) == ()


def test_a_phrase_of_a_verified_quote_is_the_documents() -> None:
    quote = "Her house, which in the novel burns down, still stands."
    for answer in (quote, "It says that her house which in the Novel burns down is there."):
        assert leaks(answer, [quote], NOVEL) == ()
        assert leaks(answer, ["Her house still stands."], NOVEL) == ("in the novel",)


@given(st.text(max_size=60), st.text(max_size=60))
def test_an_answer_that_is_a_quote_has_no_leakage(before: str, after: str) -> None:
    quote = f"{before} which in the novel burns {after}"
    hits = leaks(quote, [], NOVEL)
    assert hits == ("in the novel",)
    assert leaks(quote, [quote], NOVEL) == ()


def test_a_corpus_adds_its_own_phrases(tmp_path: Path) -> None:
    own = tmp_path / "phrases.yaml"
    own.write_text("- in Holt's other films\n- In the novel\n- in the novel\n", encoding="utf-8")
    phrases = phrases_with(own)
    assert phrases[: len(general_phrases())] == general_phrases()
    assert leaks("So it is in Holt\u2019s other films.", [], phrases) == ("in Holt's other films",)
    assert phrases_with(None) == general_phrases()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"- in the novel\n- 1984\n", "Entry 2 of .* 1984, is not a text"),
        (b"- in the novel\n-\n", "Entry 2 of .* None, is not a text"),
        (b"- a: b\n", "Entry 1 of .* {'a': 'b'}"),
        (b"- '...'\n", "Entry 1 of .* is not a text of a few words"),
        (b"- " + b"x" * 300, "Entry 1 of .* is not a text of a few words"),
        (b"", "must be a list"),
        (b"in the novel", "must be a list"),
        (b"- a\n- [b\n", "are not valid YAML at line 3"),
        (b"- \xff\xfe", "cannot be read as UTF-8"),
    ],
)
def test_a_malformed_list_is_rejected(tmp_path: Path, content: bytes, named: str) -> None:
    own = tmp_path / "phrases.yaml"
    own.write_bytes(content)
    with pytest.raises(DataFileError, match=named) as refusal:
        phrases_with(own)
    assert "\n" not in str(refusal.value)

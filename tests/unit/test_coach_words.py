"""Length, questions and shortening as a reader sees them, on arbitrary text."""

import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.chat.coach.words import (
    consists_of,
    cut,
    ends_with_question,
    holds,
    language_of,
    last_question,
    length,
)
from meta_agent_rag.text.normalise import typed

PIECES = st.sampled_from(
    [
        "What moves?",
        "The Earth. ",
        "何が動きますか？",
        "地球です。",
        "\n- ",
        "?!",
        "…",
        '"',
        "👩‍🚀",
        "e\u0301",
        "\u200b",
        " ",
        "3.5",
        "**",
        "？",
        "a" * 60,
    ]
)
ARBITRARY_TEXT = st.text(max_size=300) | st.lists(PIECES, max_size=30).map("".join)
LIMITS = st.integers(2, 200)


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        ("abc", 3),
        (" abc\n", 3),
        ("e\u0301", 1),
        ("か\u3099", 1),
        ("👩‍🚀", 1),
        ("🇯🇵🇳🇴", 2),
        ("नि", 1),
        ("가", 1),
        ("\r\n", 0),
        ("a\r\nb", 3),
    ],
)
def test_length_counts_visible_characters(text: str, characters: int) -> None:
    assert length(text) == characters


@given(ARBITRARY_TEXT)
def test_length_is_at_most_the_number_of_code_points(text: str) -> None:
    assert 0 <= length(text) <= len(text.strip())
    assert length(f"  {text}\n") == length(text)


@given(ARBITRARY_TEXT)
def test_the_last_question_is_a_question(text: str) -> None:
    question = last_question(text)
    if question:
        assert ends_with_question(question)
        assert question == question.strip()
        assert last_question(question) == question


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=4, max_size=40), ARBITRARY_TEXT)
def test_the_last_question_is_found_before_any_trailing_text(asked: str, after: str) -> None:
    trailing = regex.sub("[?？]", "", after)
    question = f"{asked}?"
    assert last_question(f"First. {question}\n{trailing}") == question


@given(ARBITRARY_TEXT, LIMITS)
def test_cut_text_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    shown = cut(text, limit)
    assert length(shown) <= limit
    if length(text) <= limit:
        assert shown == text.strip()
    else:
        assert text.strip().startswith(shown.removesuffix("…").rstrip())


@given(ARBITRARY_TEXT)
def test_a_question_mark_without_words_is_not_a_question(text: str) -> None:
    if ends_with_question(text):
        assert regex.search(r"[\p{L}\p{N}]", text)
        assert regex.search("[?？]", text)
    assert not ends_with_question(f"{text} And so it is.")


def test_a_text_of_any_length_is_measured_quickly() -> None:
    began = time.perf_counter()
    for text in ("?" * 50_000, "a" * 50_000, ". " * 50_000, "a? " * 20_000, "…" * 50_000, '"' * 50_000, "3." * 30_000):
        length(text)
        ends_with_question(text)
        last_question(text)
        cut(text, 160)
    assert time.perf_counter() - began < 20


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Why?", "en"),
        ("なぜ？", "ja"),
        ("影", "ja"),
        ("The word 影 means shadow", "en"),
        ("", "en"),
        ("カゲ", "ja"),
        ("ﾅｾﾞ", "ja"),
    ],
)
def test_the_template_language_is_detected_from_the_text(text: str, language: str) -> None:
    assert language_of(text) == language


@given(st.lists(st.sampled_from(["i", "give up", "ok", "dont know", "xyz"]), max_size=12))
def test_a_text_consists_of_phrases_if_and_only_if_every_part_is_one(parts: list[str]) -> None:
    expected = "xyz" not in parts and bool({"give up", "dont know"} & set(parts))
    assert consists_of(" ".join(parts), "gives_up", beside="fillers") == expected


def test_english_phrases_are_matched_as_whole_words() -> None:
    assert holds("i will pass it", "safe")
    assert not holds("he compassed it", "safe")
    assert holds("答えは知りません", "gives_up")
    assert typed("I DON’T know…!") == "i dont know"

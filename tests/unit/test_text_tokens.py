"""Splitting words in any script, and detecting their language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.text.language import LANGUAGES, language_of
from meta_agent_rag.text.sentences import sentences
from meta_agent_rag.text.tokens import tokens


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("甲板のクレーンは4.5トンまで", "ja", ["甲板", "の", "クレーン", "は", "4.5", "トン", "まで"]),
        ("大坝高37.5米", "zh", ["大坝", "高", "37.5", "米"]),
        ("เขื่อนสูง 37 เมตร", "th", ["เขื่อน", "สูง", "37", "เมตร"]),
        ("The dam's well-kept wall.", "en", ["The", "dam's", "well", "kept", "wall"]),
    ],
)
def test_words_are_split_by_the_rules_of_their_script(text: str, code: str, words: list[str]) -> None:
    assert language_of(text) == code
    assert [token.written for token in tokens(text, code)] == words


def test_stems_and_particles_are_detected() -> None:
    assert [token.stem for token in tokens("Thanked, thanking: the dam's", "en")] == ["thank", "thank", "the", "dam"]
    assert [token.is_particle for token in tokens("大野は叱った", "ja")] == [False, True, False, True, True]


@given(st.text(max_size=60), st.sampled_from(LANGUAGES))
def test_tokens_are_substrings_of_their_text(text: str, code: str) -> None:
    position = 0
    for token in tokens(text, code):
        assert position <= token.start < token.end <= len(text)
        assert text[token.start : token.end] == token.written
        position = token.end


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Die Mauer ist hoch und lang.", "de"),
        ("La digue est haute et longue.", "fr"),
        ("Плотина построена в этом году.", "ru"),
        ("댐은 높이가 높다.", "ko"),
        ("1912", "en"),
        ("", "en"),
    ],
)
def test_languages_are_detected(text: str, code: str) -> None:
    assert language_of(text) == code


def test_sentences_in_full_width_scripts_are_split() -> None:
    assert sentences("出港した。大野を叱った。") == ["出港した。", "大野を叱った。"]
    assert sentences("Am 4. Mai kam er. Sie ging.", "de") == ["Am 4. Mai kam er. ", "Sie ging."]

"""Length, questions and shortening as a reader sees them, on arbitrary text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.chat.coach.hooks.deadlock_breaker import gives_up
from meta_agent_rag.chat.coach.levels import levels
from meta_agent_rag.chat.coach.words import cut, ends_with_question, last_question, length
from meta_agent_rag.chat.phrases import check_files, files_of, reply_phrase
from meta_agent_rag.errors import PromptError

PIECES = st.sampled_from(
    [
        "What moves?",
        "何が動きますか？",
        "地球です。",
        "\n- ",
        "?!",
        "…",
        '"',
        "👩\u200d🚀",
        "e\u0301",
        "3.5",
        "**",
        "a" * 60,
    ]
)
ARBITRARY_TEXT = st.text(max_size=300) | st.lists(PIECES, max_size=30).map("".join)
LIMITS = st.integers(2, 200)


@given(ARBITRARY_TEXT)
def test_the_last_question_is_a_question(text: str) -> None:
    question = last_question(text)
    if question:
        assert ends_with_question(question)
        assert question == question.strip()
        assert last_question(question) == question


@given(ARBITRARY_TEXT, LIMITS)
def test_cut_text_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    shown = cut(text, limit)
    assert length(shown) <= limit
    if length(text) <= limit:
        assert shown == text.strip()
    else:
        assert text.strip().startswith(shown.removesuffix("…").rstrip())


def own(folder: Path, **texts: str) -> Path:
    """A folder with files of one's own."""
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def test_own_files_replace_entries_and_keep_the_rest(tmp_path: Path) -> None:
    folder = own(
        tmp_path,
        words="gives_up: [je donne ma langue au chat]\n",
        levels='1: {limit: 90, templates: {en: ["So?"]}}\n',
        replies="thanks: Any time.\n",
    )
    check_files(folder)
    with files_of(folder):
        assert gives_up("Je donne ma langue au chat.")
        assert not gives_up("I have no idea what it does")
        assert (levels()[1].limit, levels()[1].name, levels()[2].limit) == (90, "companion", 120)
        assert (levels()[1].questions("en", 7), len(levels()[1].questions("ja", 0)) > 1) == (("So?",), True)
        assert (reply_phrase("thanks"), reply_phrase("greeting")[:5]) == ("Any time.", "Hello")
    assert (levels()[1].limit, reply_phrase("thanks")) == (160, "You are welcome.")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"rhymes": "a: b\n"}, "'.*rhymes.yaml' replaces none"),
        ({"words": "jokes: [a]\n"}, "unknown entry 'jokes'"),
        ({"words": "gives_up: I quit\n"}, "'gives_up', must be a list"),
        ({"words": "gives_up: [yes]\n"}, "put yes, no, on and off in quotation marks"),
    ],
)
def test_a_faulty_file_of_ones_own_is_reported_at_the_start(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(PromptError, match=said):
        check_files(own(tmp_path, **files))

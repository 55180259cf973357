"""What the monitor measures in a draft besides comparing it with the second answer."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.agent.signals import coverage, short_answer_logprob
from meta_agent_rag.llm.messages import Reply
from meta_agent_rag.text.normalise import overlap
from tests.loop import BIRTH_SENTENCE, FILM_SENTENCE, QUESTION

TEXTS = (f"The Salt Road\n{FILM_SENTENCE}", f"Mira Holt\n{BIRTH_SENTENCE}")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Gatwick Airport", "gatwick airport.", 1.0),
        ("Gatwick Airport", "Gatwick", 0.6667),
        ("40 members", "members", 0.6667),
        ("Oslo", "Rome", 0.0),
        ("", "", 0.0),
    ],
)
def test_overlap_is_the_f1_over_words(one: str, other: str, expected: float) -> None:
    assert overlap(one, other) == expected
    assert overlap(other, one) == expected


@pytest.mark.parametrize(
    ("quotes", "expected"),
    [
        ((), 0.0),
        ((BIRTH_SENTENCE,), 0.25),  # born, of: director, salt, road, born
        ((FILM_SENTENCE,), 0.5),
        ((FILM_SENTENCE, BIRTH_SENTENCE), 0.75),
        (("directed",), 0.5),  # its passage is titled The Salt Road
        (("never said",), 0.0),
    ],
)
def test_coverage_counts_question_words_in_quotes_and_their_titles(quotes: tuple[str, ...], expected: float) -> None:
    assert coverage(QUESTION, quotes, TEXTS) == expected


def test_coverage_counts_function_words_if_there_are_no_others() -> None:
    assert coverage("Who is it?", ("It is.",), ("Title\nIt is.",)) == pytest.approx(2 / 3, abs=1e-4)
    assert coverage("???", ("It is.",), ("Title\nIt is.",)) == 0.0


def reply(*tokens: tuple[str, float]) -> Reply:
    return Reply(text="".join(token for token, _ in tokens), usage=None, tokens=tokens)


def test_confidence_uses_the_tokens_of_the_short_answer() -> None:
    said = reply(
        *[('{"answer": "Oslo", "short', -9.0), ('_answer": "', -9.0), ("Os", -0.5), ("lo", -1.5), ('"}', -9.0)]
    )
    assert short_answer_logprob(said, "Oslo") == -1.0


def test_all_tokens_count_if_the_answer_is_not_found_among_them() -> None:
    assert short_answer_logprob(reply(("{}", -2.0), (" ", -4.0)), "Oslo") == -3.0
    assert short_answer_logprob(Reply(text="{}", usage=None), "Oslo") is None
    assert short_answer_logprob(reply(("{}", -math.inf)), "Oslo") == -20.0


@given(st.text(min_size=1, max_size=30), st.lists(st.integers(1, 5), max_size=40))
def test_any_answer_is_found_under_any_tokenisation(answer: str, cuts: list[int]) -> None:
    text = json.dumps({"quotes": [answer], "short_answer": answer}, ensure_ascii=False)
    tokens: list[tuple[str, float]] = []
    for length in (*cuts, len(text)):
        if text:
            tokens.append((text[:length], -1.0))
            text = text[length:]
    assert short_answer_logprob(reply(*tokens), answer) == -1.0

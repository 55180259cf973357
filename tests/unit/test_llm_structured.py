"""Structured replies: whatever can be parsed is parsed, and nothing else passes for an answer."""

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from meta_agent_rag.llm.structured import MalformedReplyError, parse_reply


class Answer(BaseModel):
    answer: str
    rounds: int
    quotes: list[str]
    verdict: Literal["right", "wrong"]


GOOD: dict[str, Any] = {"answer": "Paris", "rounds": 3, "quotes": ["a", "b"], "verdict": "wrong"}
TEXT = json.dumps(GOOD)

READABLE = {
    "plain": TEXT,
    "think": f"<think>It might be {{Rome}}, or not.</think>\n{TEXT}",
    "think without beginning": f"Maybe {{Rome}}? No.\n</think>\n{TEXT}",
    "fence": f"```json\n{TEXT}\n```",
    "trailing commas": '{"answer": "Paris", "rounds": 3, "quotes": ["a", "b",], "verdict": "wrong",}',
    "bare keys": '{answer: "Paris", rounds: 3, quotes: ["a", "b"], verdict: "wrong"}',
    "missing comma": '{"answer": "Paris"\n"rounds": 3, "quotes": ["a", "b"], "verdict": "wrong"}',
    "last brace cut off": TEXT[:-1],
    "list of one": f"[{TEXT}]",
    "number as text": TEXT.replace("3", '"3"'),
    "more keys than asked": TEXT.replace("{", '{"confidence": 0.9, ', 1),
}

UNREADABLE = {
    "empty": "",
    "prose": "The answer is Paris.",
    "success in prose": "right",
    "think unclosed": f"<think>I should send {TEXT}",
    "nested": json.dumps({"reply": GOOD}),
    "truncated in the first value": '{"answer": "Par',
    "truncated in the last value": TEXT[: TEXT.index("wrong") + 3],
    "no number": TEXT.replace("3", "NaN"),
    "a verdict of its own": TEXT.replace("wrong", "partly right"),
    "too deep": '{"answer":' * 5_000,
}


@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE.keys())
def test_repairable_replies_are_parsed(text: str) -> None:
    assert parse_reply(text, Answer).model_dump() == GOOD


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_other_replies_are_rejected(text: str) -> None:
    with pytest.raises(MalformedReplyError, match=r"\w"):
        parse_reply(text, Answer)


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    reply = parse_reply(TEXT.replace("Paris", "Paris \\ud83d"), Answer)
    assert reply.answer == "Paris ?"
    assert parse_reply(TEXT.replace("Paris", "\\ud83c\\udf89"), Answer).answer == "🎉"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(st.text() | st.text("{}[]\",:\\ntrue'`<>/hik0123456789 ", max_size=60) | values.map(json.dumps))
def test_any_text_is_either_parsed_or_a_malformed_reply(text: str) -> None:
    for reply in (text, f"{text}{TEXT[:40]}", f"{TEXT[:30]}{text}"):
        try:
            parsed = parse_reply(reply, Answer)
        except MalformedReplyError:
            continue
        assert isinstance(parsed, Answer)


def test_a_truncated_reply_is_not_completed() -> None:
    whole = '{"name": "Orla Finnimore"}'
    assert parse_reply(whole + "\n\n", Named, cut=True).name == "Orla Finnimore"
    assert parse_reply(whole[:-6], Named).name
    with pytest.raises(MalformedReplyError, match="cut at its token limit"):
        parse_reply(whole[:-6], Named, cut=True)


class Named(BaseModel):
    """One text."""

    name: str

"""Each hook of the coach over a table of cases, false alarms included, in English and Japanese."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from meta_agent_rag.conversation.history import History
from meta_agent_rag.conversation.socratic.hook import (
    CoachDraft,
    IncomingMessage,
    RuleFinding,
    Ruling,
    Scope,
    ScopeScore,
)
from meta_agent_rag.conversation.socratic.hooks.answer_guard import POST_HOOK as GUARD
from meta_agent_rag.conversation.socratic.hooks.answer_guard import gives_away
from meta_agent_rag.conversation.socratic.hooks.deadlock_breaker import PRE_HOOK as DEADLOCK
from meta_agent_rag.conversation.socratic.hooks.exit_trigger import POST_HOOK as EXIT
from meta_agent_rag.conversation.socratic.hooks.scope_guard import PRE_HOOK as SCOPE
from meta_agent_rag.conversation.socratic.hooks.validation import POST_HOOK as VALIDATION
from meta_agent_rag.conversation.socratic.levels import levels

TABLES = Path(__file__).parents[1] / "coaching"
ASKED = "What turns, the Sun or the Earth?"


@cache
def table(hook: str) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = yaml.safe_load((TABLES / f"{hook}.yaml").read_text(encoding="utf-8"))
    return rows


def cases(hook: str, *names: str) -> Sequence[Any]:
    return [row for name in names for row in table(hook)[name]]


class FarOff:
    """A scope that nothing is near to."""

    async def score(self, message: str, topic: str = "") -> ScopeScore | None:
        return ScopeScore(topic=topic or "sundials", score=0.04, threshold=0.15)


def incoming(
    message: str, *, answer: str = ASKED, question: str = "Why?", mode: str = "coach", scope: Scope | None = None
) -> IncomingMessage:
    history = History().with_exchange(question=question, answer=answer, standalone=question, mode=mode)
    return IncomingMessage(message=message, history=history, level=levels()[1], scope=scope)


def draft_of(text: str, *, level: int = 1, acknowledges: bool = False, is_hint: bool = False) -> CoachDraft:
    return CoachDraft(text=text, message="", level=levels()[level], acknowledges=acknowledges, is_hint=is_hint)


@pytest.mark.parametrize("hook", ["answer_guard", "deadlock_breaker", "exit_trigger", "scope_guard", "validation"])
def test_every_table_is_long_and_in_two_languages(hook: str) -> None:
    rows = [str(row) for name in table(hook) for row in table(hook)[name]]
    assert len(rows) >= 40
    assert len(set(rows)) == len(rows) or hook == "exit_trigger"
    assert sum(1 for row in rows if re.search("[\u3040-\u30ff]", row)) >= 5


@pytest.mark.parametrize("message", cases("deadlock_breaker", "stuck"))
async def test_a_learner_who_is_stuck_is_noticed(message: str) -> None:
    assert (await DEADLOCK.before(incoming(message))).emergency


@pytest.mark.parametrize("message", cases("deadlock_breaker", "trying"))
async def test_a_learner_who_tries_is_not_stuck(message: str) -> None:
    assert await DEADLOCK.before(incoming(message)) == Ruling()


@pytest.mark.parametrize(("before", "now"), cases("deadlock_breaker", "repeated"))
async def test_the_same_answer_again_is_a_deadlock(before: str, now: str) -> None:
    assert (await DEADLOCK.before(incoming(now, question=before))).detail == "repeats"


@pytest.mark.parametrize(("before", "now"), cases("deadlock_breaker", "not_repeated"))
async def test_another_answer_is_none(before: str, now: str) -> None:
    assert await DEADLOCK.before(incoming(now, question=before)) == Ruling()


@pytest.mark.parametrize(
    "before",
    [{"answer": "The Earth turns."}, {"mode": "teacher"}, {"mode": ""}, {"mode": "hint"}],
    ids=["no question", "teacher", "companion", "just after a hint"],
)
async def test_there_is_no_deadlock_but_on_the_coach_s_question(before: dict[str, Any]) -> None:
    assert await DEADLOCK.before(incoming("I don't know", **before)) == Ruling()
    first = IncomingMessage(message="I don't know", history=History(), level=levels()[1])
    assert await DEADLOCK.before(first) == Ruling()


async def test_long_and_strange_texts_are_read_quickly() -> None:
    for message in ("i dont know " * 5000, "\ud800", "わからない" * 3000, "the the the " * 20 + "x"):
        await DEADLOCK.before(incoming(message))
        await SCOPE.before(incoming(message, scope=FarOff()))
        EXIT.after(draft_of(message))
        VALIDATION.after(draft_of(message))


@pytest.mark.parametrize("message", cases("scope_guard", "passes"))
async def test_what_the_dialogue_brings_passes_without_the_check(message: str) -> None:
    assert await SCOPE.before(incoming(message, scope=FarOff())) == Ruling()


@pytest.mark.parametrize("message", cases("scope_guard", "measured"))
async def test_everything_else_is_measured_and_the_score_is_told(message: str) -> None:
    ruling = await SCOPE.before(incoming(message, scope=FarOff()))
    assert "0.04" in ruling.refusal
    assert "0.15" in ruling.refusal
    assert "sundials" in ruling.refusal
    assert ruling.score == pytest.approx(0.04)


async def test_without_a_scope_or_in_an_emergency_nothing_is_out_of_scope() -> None:
    message = "Who won the world cup in 1998?"
    assert await SCOPE.before(incoming(message)) == Ruling()
    urgent = IncomingMessage(
        message=message,
        history=History(),
        level=levels()[1],
        scope=FarOff(),
        rulings=(Ruling(emergency="the learner gives up."),),
    )
    assert await SCOPE.before(urgent) == Ruling()


async def test_a_learner_who_is_still_stuck_after_the_hint_is_not_turned_away() -> None:
    message = "I really have no idea what to answer to that, please just tell me"
    assert await SCOPE.before(incoming(message, mode="hint", answer="It turns.", scope=FarOff())) == Ruling()
    assert (await SCOPE.before(incoming(message, mode="teacher", scope=FarOff()))).refusal


def filled(text: str) -> str:
    return re.sub(r"\{(\d+)\}", lambda match: "a" * int(match[1]), text)


@pytest.mark.parametrize(("level", "text"), cases("validation", "keeps"))
def test_a_reply_that_keeps_the_rules(level: int, text: str) -> None:
    assert VALIDATION.after(draft_of(filled(text), level=level)) == RuleFinding()


@pytest.mark.parametrize(("level", "text"), cases("validation", "breaks"))
def test_a_reply_that_breaks_a_rule(level: int, text: str) -> None:
    assert VALIDATION.after(draft_of(filled(text), level=level)).violation


def test_the_reason_names_the_measure() -> None:
    assert "81" in VALIDATION.after(draft_of(filled("{80}?"), level=3)).violation
    assert "80" in VALIDATION.after(draft_of(filled("{80}?"), level=3)).violation


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_hint_need_not_ask_and_has_the_length_of_the_first_level(level: int) -> None:
    assert not VALIDATION.after(draft_of(filled("{160}"), level=level, is_hint=True)).violation
    assert VALIDATION.after(draft_of(filled("{161}"), level=level, is_hint=True)).violation
    assert VALIDATION.after(draft_of("...?", level=level, is_hint=True)).violation


@pytest.mark.parametrize("text", cases("exit_trigger", "success"))
def test_an_acknowledgement_is_seen(text: str) -> None:
    assert EXIT.after(draft_of(text)).acknowledged
    assert not EXIT.after(draft_of(text, is_hint=True)).acknowledged


@pytest.mark.parametrize("text", cases("exit_trigger", "no_success"))
def test_what_is_no_acknowledgement_is_not_celebrated(text: str) -> None:
    assert not EXIT.after(draft_of(text)).acknowledged


@pytest.mark.parametrize("text", cases("exit_trigger", "overruled"))
def test_words_overrule_the_field(text: str) -> None:
    assert not EXIT.after(draft_of(text, acknowledges=True)).acknowledged


@pytest.mark.parametrize("text", cases("exit_trigger", "not_overruled"))
def test_the_field_comes_first(text: str) -> None:
    assert EXIT.after(draft_of(text, acknowledges=True)).acknowledged
    assert not EXIT.after(draft_of(text)).acknowledged


def guarded(answer: str, message: str, text: str, *earlier: str) -> bool:
    draft = CoachDraft(text=text, message=message, level=levels()[1], answers=[answer], earlier=earlier, is_hint=True)
    return bool(GUARD.after(draft).violation)


@pytest.mark.parametrize("half", ["", "_held_out"])
def test_hints_that_give_the_answer_away_are_told_from_others(half: str) -> None:
    leaking, harmless = cases("answer_guard", f"leaking{half}"), cases("answer_guard", f"harmless{half}")
    assert len(leaking) == len(harmless) == 10
    assert sum(guarded(*row) for row in leaking) >= 9
    assert sum(guarded(*row) for row in harmless) <= 1


@pytest.mark.parametrize(
    ("answer", "text", "given"),
    [
        ("", "It is the tilt.", False),
        ("the", "It is the tilt.", False),
        ("tilt", "It is not the tilt.", False),
        ("tilt", "Isn't it the tilt?", True),
        ("tilt", "**Tilted**, that is all.", True),
        ("tilt", "Is it the tilt, or the distance?", False),
        ("傾き", "傾きですか、それとも距離ですか？", False),
    ],
)
def test_what_gives_an_answer_away(answer: str, text: str, given: bool) -> None:
    assert gives_away(text, answer) == given


def test_words_of_the_learner_are_not_given_away() -> None:
    row = ("carbon dioxide", "No idea.", "Carbon dioxide, you said. Why?")
    assert guarded(*row)
    assert not guarded(*row, "It is carbon dioxide.")
    assert guarded(*row, "Is it oxygen or carbon dioxide?")

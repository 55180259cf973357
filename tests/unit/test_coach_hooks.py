"""Each coach hook over a table of cases, including false alarms, in English and Japanese."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from meta_agent_rag.chat.coach.hook import (
    CoachDraft,
    IncomingMessage,
    RuleFinding,
    Ruling,
    Scope,
    ScopeScore,
)
from meta_agent_rag.chat.coach.hooks.answer_guard import POST_HOOK as GUARD
from meta_agent_rag.chat.coach.hooks.deadlock_breaker import PRE_HOOK as DEADLOCK
from meta_agent_rag.chat.coach.hooks.exit_trigger import POST_HOOK as EXIT
from meta_agent_rag.chat.coach.hooks.scope_guard import PRE_HOOK as SCOPE
from meta_agent_rag.chat.coach.hooks.validation import POST_HOOK as VALIDATION
from meta_agent_rag.chat.coach.levels import levels
from meta_agent_rag.chat.history import History

TABLES = Path(__file__).parents[1] / "coaching"
ASKED = "What turns, the Sun or the Earth?"


@cache
def table(hook: str) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = yaml.safe_load((TABLES / f"{hook}.yaml").read_text(encoding="utf-8"))
    return rows


def cases(hook: str, *names: str) -> Sequence[Any]:
    return [row for name in names for row in table(hook)[name]]


class DistantScope:
    """A scope that every message is far from."""

    async def score(self, message: str, topic: str = "", *, asked: str = "") -> ScopeScore | None:
        return ScopeScore(topic=topic or "sundials", score=0.04, threshold=0.15)


def incoming(
    message: str, *, answer: str = ASKED, question: str = "Why?", mode: str = "coach", scope: Scope | None = None
) -> IncomingMessage:
    history = History().with_exchange(question=question, answer=answer, standalone=question, mode=mode)
    return IncomingMessage(message=message, history=history, level=levels()[1], scope=scope)


def draft_of(text: str, *, level: int = 1, acknowledges: bool = False, is_hint: bool = False) -> CoachDraft:
    return CoachDraft(text=text, message="", level=levels()[level], acknowledges=acknowledges, is_hint=is_hint)


@pytest.mark.parametrize("message", cases("deadlock_breaker", "stuck"))
async def test_a_stuck_learner_is_detected(message: str) -> None:
    assert (await DEADLOCK.before(incoming(message))).emergency


@pytest.mark.parametrize("message", cases("deadlock_breaker", "trying"))
async def test_a_learner_who_tries_is_not_taken_for_stuck(message: str) -> None:
    assert await DEADLOCK.before(incoming(message)) == Ruling()


@pytest.mark.parametrize(("before", "now"), cases("deadlock_breaker", "repeated"))
async def test_a_repeated_answer_is_a_deadlock(before: str, now: str) -> None:
    assert (await DEADLOCK.before(incoming(now, question=before))).detail == "repeats"


@pytest.mark.parametrize(("before", "now"), cases("deadlock_breaker", "not_repeated"))
async def test_a_different_answer_is_not_a_deadlock(before: str, now: str) -> None:
    assert await DEADLOCK.before(incoming(now, question=before)) == Ruling()


@pytest.mark.parametrize(
    "before",
    [{"answer": "The Earth turns."}, {"mode": "teacher"}, {"mode": ""}, {"mode": "hint"}],
    ids=["no question", "teacher", "companion", "just after a hint"],
)
async def test_a_deadlock_needs_a_preceding_question_of_the_coach(before: dict[str, Any]) -> None:
    assert await DEADLOCK.before(incoming("I don't know", **before)) == Ruling()
    first = IncomingMessage(message="I don't know", history=History(), level=levels()[1])
    assert await DEADLOCK.before(first) == Ruling()


@pytest.mark.parametrize("message", cases("scope_guard", "passes"))
async def test_dialogue_replies_skip_the_scope_check(message: str) -> None:
    assert await SCOPE.before(incoming(message, scope=DistantScope())) == Ruling()


@pytest.mark.parametrize("message", cases("scope_guard", "measured"))
async def test_other_messages_are_scored_and_the_score_is_reported(message: str) -> None:
    ruling = await SCOPE.before(incoming(message, scope=DistantScope()))
    assert "0.04" in ruling.refusal
    assert "0.15" in ruling.refusal
    assert "sundials" in ruling.refusal
    assert ruling.score == pytest.approx(0.04)


async def test_a_learner_still_stuck_after_a_hint_is_not_refused() -> None:
    message = "I really have no idea what to answer to that, please just tell me"
    assert await SCOPE.before(incoming(message, mode="hint", answer="It turns.", scope=DistantScope())) == Ruling()
    assert (await SCOPE.before(incoming(message, mode="teacher", scope=DistantScope()))).refusal


def filled(text: str) -> str:
    return re.sub(r"\{(\d+)\}", lambda match: "a" * int(match[1]), text)


@pytest.mark.parametrize(("level", "text"), cases("validation", "keeps"))
def test_a_reply_that_obeys_the_rules_passes(level: int, text: str) -> None:
    assert VALIDATION.after(draft_of(filled(text), level=level)) == RuleFinding()


@pytest.mark.parametrize(("level", "text"), cases("validation", "breaks"))
def test_a_reply_that_breaks_a_rule_is_a_violation(level: int, text: str) -> None:
    assert VALIDATION.after(draft_of(filled(text), level=level)).violation


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_hint_needs_no_question_and_has_the_length_limit_of_level_one(level: int) -> None:
    assert not VALIDATION.after(draft_of(filled("{160}"), level=level, is_hint=True)).violation
    assert VALIDATION.after(draft_of(filled("{161}"), level=level, is_hint=True)).violation
    assert VALIDATION.after(draft_of("...?", level=level, is_hint=True)).violation


@pytest.mark.parametrize("text", cases("exit_trigger", "success"))
def test_an_acknowledgement_is_detected(text: str) -> None:
    assert EXIT.after(draft_of(text)).acknowledged
    assert not EXIT.after(draft_of(text, is_hint=True)).acknowledged


@pytest.mark.parametrize("text", cases("exit_trigger", "no_success"))
def test_other_replies_are_not_taken_for_an_acknowledgement(text: str) -> None:
    assert not EXIT.after(draft_of(text)).acknowledged


@pytest.mark.parametrize("text", cases("exit_trigger", "overruled"))
def test_wording_that_denies_overrides_the_field(text: str) -> None:
    assert not EXIT.after(draft_of(text, acknowledges=True)).acknowledged


@pytest.mark.parametrize("text", cases("exit_trigger", "not_overruled"))
def test_the_field_counts_if_the_wording_is_neutral(text: str) -> None:
    assert EXIT.after(draft_of(text, acknowledges=True)).acknowledged
    assert not EXIT.after(draft_of(text)).acknowledged


def guarded(answer: str, message: str, text: str, *earlier: str) -> bool:
    draft = CoachDraft(text=text, message=message, level=levels()[1], answers=[answer], earlier=earlier, is_hint=True)
    return bool(GUARD.after(draft).violation)


@pytest.mark.parametrize("half", ["", "_held_out"])
def test_hints_that_reveal_the_answer_are_distinguished_from_harmless_ones(half: str) -> None:
    leaking, harmless = cases("answer_guard", f"leaking{half}"), cases("answer_guard", f"harmless{half}")
    assert len(leaking) == len(harmless) == 10
    assert sum(guarded(*row) for row in leaking) >= 9
    assert sum(guarded(*row) for row in harmless) <= 1

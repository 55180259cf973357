"""Each coach hook over a table of cases, including false alarms, in English and Japanese."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from meta_agent_rag.chat.coach.hook import CoachDraft, IncomingMessage, Ruling, Scope, ScopeScore
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

    async def score(self, message: str, *, asked: str = "") -> ScopeScore | None:
        return ScopeScore(topic="sundials", score=0.04, threshold=0.15)


def incoming(
    message: str, *, answer: str = ASKED, question: str = "Why?", mode: str = "coach", scope: Scope | None = None
) -> IncomingMessage:
    history = History().with_exchange(question=question, answer=answer, standalone=question, mode=mode)
    return IncomingMessage(message=message, history=history, level=levels()[1], scope=scope)


async def ruled(message: str, **before: Any) -> Ruling:
    return await DEADLOCK.before(incoming(message, **before))


def draft_of(text: str, *, level: int = 1, acknowledges: bool = False, is_hint: bool = False) -> CoachDraft:
    return CoachDraft(text=text, message="", level=levels()[level], acknowledges=acknowledges, is_hint=is_hint)


@pytest.mark.parametrize(("kind", "stuck"), [("stuck", True), ("trying", False)])
async def test_only_a_stuck_learner_is_taken_for_stuck(kind: str, stuck: bool) -> None:
    assert not [text for text in cases("deadlock_breaker", kind) if bool((await ruled(text)).emergency) != stuck]


@pytest.mark.parametrize(("kind", "detail"), [("repeated", "repeats"), ("not_repeated", "")])
async def test_only_a_repeated_answer_is_a_deadlock(kind: str, detail: str) -> None:
    rows = cases("deadlock_breaker", kind)
    assert not [row for row in rows if (await ruled(row[1], question=row[0])).detail != detail]


@pytest.mark.parametrize(
    "before",
    [{"answer": "The Earth turns."}, {"mode": "teacher"}, {"mode": ""}, {"mode": "hint"}],
    ids=["no question", "teacher", "companion", "just after a hint"],
)
async def test_a_deadlock_needs_a_preceding_question_of_the_coach(before: dict[str, Any]) -> None:
    assert await DEADLOCK.before(incoming("I don't know", **before)) == Ruling()
    first = IncomingMessage(message="I don't know", history=History(), level=levels()[1])
    assert await DEADLOCK.before(first) == Ruling()


async def test_only_replies_of_a_dialogue_skip_the_scope_check_and_a_refusal_has_its_score() -> None:
    for message in cases("scope_guard", "passes"):
        assert await SCOPE.before(incoming(message, scope=DistantScope())) == Ruling(), message
    for message in cases("scope_guard", "measured"):
        ruling = await SCOPE.before(incoming(message, scope=DistantScope()))
        assert not [part for part in ("0.04", "0.15", "sundials") if part not in ruling.refusal], message


async def test_a_learner_still_stuck_after_a_hint_is_not_refused() -> None:
    message = "I really have no idea what to answer to that, please just tell me"
    assert await SCOPE.before(incoming(message, mode="hint", answer="It turns.", scope=DistantScope())) == Ruling()
    assert (await SCOPE.before(incoming(message, mode="teacher", scope=DistantScope()))).refusal


def filled(text: str) -> str:
    return re.sub(r"\{(\d+)\}", lambda match: "a" * int(match[1]), text)


@pytest.mark.parametrize(("kind", "broken"), [("keeps", False), ("breaks", True)])
def test_a_reply_that_breaks_a_rule_is_a_violation(kind: str, broken: bool) -> None:
    rows = [(level, filled(text)) for level, text in cases("validation", kind)]
    assert not [row for row in rows if bool(VALIDATION.after(draft_of(row[1], level=row[0])).violation) != broken]


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_hint_needs_no_question_and_has_the_length_limit_of_level_one(level: int) -> None:
    assert not VALIDATION.after(draft_of(filled("{160}"), level=level, is_hint=True)).violation
    assert VALIDATION.after(draft_of(filled("{161}"), level=level, is_hint=True)).violation
    assert VALIDATION.after(draft_of("...?", level=level, is_hint=True)).violation


@pytest.mark.parametrize(
    ("kind", "by_words", "by_field"),
    [("success", True, True), ("no_success", False, None), ("overruled", None, False), ("not_overruled", False, True)],
)
def test_an_acknowledgement_is_in_words_or_in_the_field_unless_words_deny_it(
    kind: str, by_words: bool | None, by_field: bool | None
) -> None:
    for text in cases("exit_trigger", kind):
        for acknowledges, expected in ((False, by_words), (True, by_field)):
            found = EXIT.after(draft_of(text, acknowledges=acknowledges)).acknowledged
            assert found == (found if expected is None else expected), (text, acknowledges)
        assert not EXIT.after(draft_of(text, acknowledges=True, is_hint=True)).acknowledged


def guarded(answer: str, message: str, text: str, *earlier: str) -> bool:
    draft = CoachDraft(text=text, message=message, level=levels()[1], answers=[answer], earlier=earlier, is_hint=True)
    return bool(GUARD.after(draft).violation)


@pytest.mark.parametrize("half", ["", "_held_out"])
def test_hints_that_reveal_the_answer_are_distinguished_from_harmless_ones(half: str) -> None:
    leaking, harmless = cases("answer_guard", f"leaking{half}"), cases("answer_guard", f"harmless{half}")
    assert len(leaking) == len(harmless) == 10
    assert sum(guarded(*row) for row in leaking) >= 9
    assert sum(guarded(*row) for row in harmless) <= 1
    assert all(guarded(*row) for row in cases("answer_guard", "leaking_beside_a_denial"))
    assert not any(guarded(*row) for row in cases("answer_guard", "harmless_lists"))

"""The coach in conversation: what the learner sees, what the model sees, and what is remembered."""

import json
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.chat.coach.coach import CoachReply, obeys
from meta_agent_rag.chat.coach.hook import ScopeScore
from meta_agent_rag.chat.coach.levels import Socratic, levels
from meta_agent_rag.chat.history import History
from meta_agent_rag.chat.session import ChatSession, Turn
from meta_agent_rag.chat.store import Stored
from meta_agent_rag.chat.transcript import coaching_lines
from meta_agent_rag.errors import AuthenticationError, InputError, RefusedError, UnknownNameError
from meta_agent_rag.testing import ScriptedModel
from tests.coach import ASKED, EXPLAINED, OnePassage, coaching, reply
from tests.talk import means

QUESTION = "Why does the shadow of a stick move during the day?"
GOOD = "What stands still, the stick or the Sun?"
HINT = "It is the Earth that turns."


def coached(turn: Turn) -> CoachReply:
    assert isinstance(turn.reply, CoachReply)
    return turn.reply


async def asked_once(talk: ChatSession, message: str = QUESTION) -> CoachReply:
    return coached(await talk.reply(message))


@pytest.mark.parametrize(("message", "language"), [(QUESTION, "en"), ("なぜ影は動くのですか？", "ja")])
async def test_a_template_is_used_if_no_draft_has_a_question(tmp_path: Path, message: str, language: str) -> None:
    model = ScriptedModel({"coach": reply(EXPLAINED, right=True)})
    async with coaching(tmp_path, model, level=3) as talk:
        first, second = [await asked_once(talk, message), await asked_once(talk, f"{message} So?")]
    questions = levels()[3].templates[language]
    assert (first.text, first.trace.outcome) == (questions[0], "template")
    assert second.text == questions[1]
    assert not first.acknowledged


@pytest.mark.parametrize(("stuck", "level"), [("I don't know", 1), ("...", 2), ("わかりません", 3)])
async def test_a_deadlock_leads_to_one_hint_then_the_coach_asks_again(tmp_path: Path, stuck: str, level: int) -> None:
    model = ScriptedModel({"coach": [reply(GOOD), reply(HINT, right=True), reply(HINT), reply(GOOD)]})
    async with coaching(tmp_path, model, level=level) as talk:
        replies = [await asked_once(talk, message) for message in (QUESTION, stuck, stuck)]
    first, hint, after = replies
    assert [*first.trace.layers] == ["style", "past", "evidence"]
    assert [*hint.trace.layers] == ["style", "past", "evidence", "emergency"]
    assert (hint.text, hint.trace.outcome, hint.acknowledged) == (HINT, "accepted", False)
    assert hint.trace.emergency
    assert (after.text, after.trace.outcome) == (GOOD, "regenerated")
    assert not after.trace.emergency
    assert [exchange.mode for exchange in talk.history.exchanges] == ["coach", "hint", "coach"]


LEAK = "Could it be the EARTH'S turning?"
ANSWER = "the Earth turns"


@pytest.mark.parametrize(
    ("lines", "text", "outcome"),
    [
        ([GOOD], GOOD, "accepted"),
        ([LEAK, GOOD], GOOD, "regenerated"),
        ([LEAK, LEAK], None, "template"),
        ([f"Does the Earth turn? {GOOD}", f"Yes, it turns, the Earth. {GOOD}"], GOOD, "shortened"),
    ],
)
async def test_drafts_that_reveal_the_answer_are_not_shown(
    tmp_path: Path, lines: list[str], text: str | None, outcome: str
) -> None:
    drafts = [reply(ASKED, answer=ANSWER), *(reply(line, answer=ANSWER) for line in lines)]
    model = ScriptedModel({"coach": drafts})
    async with coaching(tmp_path, model) as talk:
        assert (await asked_once(talk)).text == ASKED, "a question may offer the answer as one of several options"
        shown = await asked_once(talk, "What is a dial?")
    assert shown.text == (text or levels()[1].templates["en"][1])
    assert shown.trace.outcome == outcome
    assert [bool(attempt.finding.violation) for attempt in shown.trace.attempts] == [line != GOOD for line in lines]
    assert all("gives the answer away" in violation for violation in shown.trace.violations)
    reported = [line for line in coaching_lines(shown.trace) if "gives the answer away" in line]
    assert len(reported) == len(shown.trace.violations)
    if len(lines) > 1:
        assert shown.trace.violations[0] in model.requests[-1].messages[-1].content


class ConstantScope:
    """A scope with one score for every message."""

    def __init__(self, score: float) -> None:
        self.value, self.asked = score, 0

    async def score(self, message: str, *, asked: str = "") -> ScopeScore | None:
        self.asked += 1
        return ScopeScore(topic="sundials", score=self.value, threshold=0.15)


async def test_an_off_topic_message_costs_no_call_and_is_not_remembered(tmp_path: Path) -> None:
    model, scope, retriever = ScriptedModel({"coach": reply(GOOD)}), ConstantScope(0.03), OnePassage()
    async with coaching(tmp_path, model, scope=scope, retriever=retriever) as talk:
        shown = await asked_once(talk, "Who won the football world cup in 1998?")
        assert (shown.trace.outcome, "0.03" in shown.text) == ("out_of_scope", True)
        assert (talk.history.turns, model.requests, retriever.asked) == (0, [], [])
        scope.value = 0.15
        await talk.reply(QUESTION)
        await asked_once(talk, "I really have no idea what to answer to that, please just tell me")
    assert not any(shown.text in message.content for request in model.requests for message in request.messages)
    assert (scope.asked, talk.history.turns) == (2, 2)


async def test_the_prompt_holds_the_latest_ten_messages_and_a_summary(tmp_path: Path) -> None:
    model = ScriptedModel({"coach": reply(GOOD)})
    async with coaching(tmp_path, model) as talk:
        for number in range(8):
            await talk.reply(f"Could it be thing number {number}, which I think turns?")
    *_, last = model.requests
    assert [message.role for message in last.messages] == ["system", *["user", "assistant"] * 5, "user"]
    assert last.messages[1].content.startswith("Could it be thing number 2")
    assert "thing number 1" in last.messages[0].content
    assert "thing number 3" not in last.messages[0].content
    assert "Earth turns once in 24 hours" in last.messages[0].content


@pytest.mark.parametrize(("gives_up", "shown"), [(True, HINT), (False, GOOD)])
async def test_giving_up_is_understood_in_any_language(tmp_path: Path, gives_up: bool, shown: str) -> None:
    model = ScriptedModel(
        {"coach": [reply(GOOD), reply(HINT), reply(GOOD)], "rewrite_query": means("", gives_up=gives_up)}
    )
    async with coaching(tmp_path, model) as talk:
        await talk.reply(QUESTION)
        turn = await asked_once(talk, "Je donne ma langue au chat.")
    assert (turn.text, bool(turn.trace.emergency)) == (shown, gives_up)


async def test_model_errors_are_survived_or_raised(tmp_path: Path) -> None:
    prose = ScriptedModel({"coach": "I would rather explain."})
    async with coaching(tmp_path, prose, level=3) as talk:
        shown = await asked_once(talk)
        assert (shown.trace.outcome, obeys(shown.text, 3)) == ("template", True)
        assert len(prose.requests) == 2
    lost: list[Any] = [reply(f"{EXPLAINED} Why is that?"), RefusedError("busy")]
    async with coaching(tmp_path, ScriptedModel({"coach": lost})) as talk:
        shown = await asked_once(talk)
        assert shown.text == "Why is that?"
    for fault in (RefusedError("busy"), AuthenticationError("wrong key")):
        async with coaching(tmp_path, ScriptedModel({"coach": fault})) as talk:
            with pytest.raises(type(fault)):
                await talk.reply(QUESTION)
            assert talk.history == History()
    stops: list[Any] = [reply(EXPLAINED), AuthenticationError("wrong key")]
    async with coaching(tmp_path, ScriptedModel({"coach": stops})) as talk:
        with pytest.raises(AuthenticationError):
            await talk.reply(QUESTION)


def test_modes_and_levels_are_validated_and_stored() -> None:
    held = Socratic(mode="coach", level=3, topic="sundials")
    stored = Stored(corpus="notes", history=History(), socratic=held)
    assert Stored.from_json(stored.as_json()) == stored
    plain = {"corpus": "notes", "history": {}}
    assert Stored.from_json(json.dumps(plain)).socratic == Socratic()
    with pytest.raises(UnknownNameError, match="no mode 'preacher'; choose from: coach, teacher"):
        Socratic(mode="preacher")  # type: ignore[arg-type]
    for level in (0, 4, True):
        with pytest.raises(InputError, match=r"no level .*choose from: 1, 2, 3"):
            Socratic(mode="coach", level=level)

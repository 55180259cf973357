"""What a learner replies to the coach's question: attempts, changes of subject, giving up and small talk."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.coaching.course import read_course
from meta_agent_rag.chat.coach.coach import CoachReply
from meta_agent_rag.chat.coach.hook import ScopeScore
from meta_agent_rag.chat.coach.hooks.deadlock_breaker import PRE_HOOK as DEADLOCK
from meta_agent_rag.chat.coach.hooks.scope_guard import PRE_HOOK as SCOPE
from meta_agent_rag.chat.coach.scope import TopicScope
from meta_agent_rag.chat.history import History
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from tests.coach import ASKED, coaching, reply
from tests.unit.test_coach_hooks import DistantScope, incoming
from tests.unit.test_coach_meanings import meanings

TABLES = Path(__file__).parents[1] / "coaching"


@cache
def table(name: str) -> Any:
    return yaml.safe_load((TABLES / f"{name}.yaml").read_text("utf-8"))


@cache
def course_scope() -> TopicScope:
    encoder = load_encoder(Settings.load(), "all-MiniLM-L6-v2").encoder
    return TopicScope(subject=read_course().subject(encoder), encoder=AsyncEncoder(encoder))


async def passed(kind: str, rows: Any) -> list[bool]:
    return [
        found.score >= found.threshold
        for row in rows
        for message in row[kind]
        if (found := await course_scope().score(message, asked=row["asked"])) is not None
    ]


async def test_replies_to_the_coachs_question_pass_and_changes_of_subject_do_not() -> None:
    held_out = table("replies")[4:]
    answers, changes = await passed("answers", held_out), await passed("changes", held_out)
    assert sum(answers) >= 0.85 * len(answers)
    assert sum(changes) <= 0.1 * len(changes)


async def gives_up(message: str) -> bool:
    asked = replace(incoming(message), meanings=meanings(), scope=DistantScope())
    return bool((await DEADLOCK.before(asked)).emergency)


async def test_giving_up_is_recognised_in_many_languages() -> None:
    stuck = [await gives_up(message) for message in table("giving_up")["gives_up"]]
    trying = [message for message in table("giving_up")["tries"] if await gives_up(message)]
    assert sum(stuck) >= 0.6 * len(stuck)
    assert len(trying) <= 1, trying


class SeasonsScope:
    """A scope in which every message is about the seasons."""

    async def score(self, message: str, topic: str = "", *, asked: str = "") -> ScopeScore | None:
        near = not topic or topic == "seasons"
        return ScopeScore(topic=topic or "seasons", score=0.3 if near else 0.02, threshold=0.1)


async def test_a_question_that_another_topic_covers_is_refused_with_its_name() -> None:
    message = "Why are days longer in summer than in winter?"
    asked = replace(incoming(message, scope=SeasonsScope()), history=History(), topic="sundials")
    refusal = (await SCOPE.before(asked)).refusal
    for part in ("outside the topic sundials", "the topic seasons covers it", "`/topic any`", "`options.topic`"):
        assert part in refusal
    distant = replace(asked, scope=DistantScope())
    assert "outside the subject" in (await SCOPE.before(distant)).refusal


async def test_a_short_reply_keeps_the_topic_of_the_conversation(tmp_path: Path) -> None:
    model = ScriptedModel({"coach": reply(ASKED)})
    async with coaching(tmp_path, model, scope=SeasonsScope()) as conversation:
        for message in ("What is it that makes the days longer in June?", "maybe the wind"):
            turn = await conversation.say(message)
            assert isinstance(turn.reply, CoachReply)
            assert turn.reply.topic == "seasons"


@pytest.mark.parametrize(
    ("message", "by_coach"),
    [
        ("Thanks!", False),
        ("ok, thank you", False),
        ("Tack så mycket", False),
        ("Goodbye", False),
        ("\U0001f64f", False),
        ("What have we discussed?", False),
        ("Thanks, it is the Earth that turns", True),
        ("Yes, thanks", True),
        ("morning", True),
        ("good", True),
        ("\U0001f44d", True),
        ("no", True),
    ],
)
async def test_pleasantries_are_answered_before_the_coach(tmp_path: Path, message: str, by_coach: bool) -> None:
    model = ScriptedModel({"coach": reply(ASKED)})
    async with coaching(tmp_path, model) as conversation:
        await conversation.say("Why does the shadow move?")
        before = conversation.history
        turn = await conversation.say(message)
        assert isinstance(turn.reply, CoachReply) is by_coach
        assert (conversation.history == before) is not by_coach

"""The coach over an ingested course: its topics, and a mode stored with the session."""

from pathlib import Path

import pytest

from meta_agent_rag.chat.coach.coach import CoachReply
from meta_agent_rag.chat.coach.levels import Socratic
from meta_agent_rag.chat.coach.scope import front_matter
from meta_agent_rag.chat.session import open_chat
from meta_agent_rag.errors import InputError
from meta_agent_rag.ingestion.pipeline import ingest
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import ScriptedModel
from tests.coach import reply
from tests.loop import draft, second_answer, settings_in

COURSE = Path(__file__).parents[2] / "docs" / "examples" / "course"
HASHED = ("ENCODER=hash-64", "MONITOR_ENCODER=hash-64", "SCOPE_THRESHOLD=-1")
QUESTION = "Why does the shadow move over the dial of a sundial?"
GOOD = "What stands still, the stick or the Sun?"


async def test_a_resumed_course_keeps_its_mode(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, *HASHED)
    report = await ingest(settings, [COURSE], "course", encoder=AsyncEncoder(HashEncoder()))
    assert len(report.outcomes) == 6
    sentence = "A sundial has two parts: a rod or edge that throws a shadow, called the gnomon, and a surface with hour"
    said = {
        "write": draft("the gnomon", quotes=[sentence]),
        "second_answer": second_answer("the gnomon"),
        "coach": reply(GOOD),
    }
    model = ScriptedModel(said)
    async with open_chat(settings, corpus="course", session="lessons", model=model) as talk:
        assert [topic.name for topic in talk.topics] == ["seasons", "sundials", "time"]
        assert "Setting up the gnomon: A vertical stick" in talk.topics[1].anchors
        assert "teacher" in await talk.hold(mode="teacher")
        await talk.reply("What throws the shadow of a sundial?")
        notice = await talk.hold(mode="coach", level=3, topic="sundials")
        for wrong in ({"mode": "preacher"}, {"level": 4}, {"topic": "cookery"}):
            with pytest.raises(InputError):
                await talk.hold(**wrong)
        assert talk.socratic == Socratic(mode="coach", level=3, topic="sundials")
    again = ScriptedModel(said)
    async with open_chat(settings, session="lessons", corpus="course", model=again) as talk:
        assert talk.socratic == Socratic(mode="coach", level=3, topic="sundials")
        turn = await talk.reply(QUESTION)
        assert isinstance(turn.reply, CoachReply)
        assert [exchange.mode for exchange in talk.history.exchanges] == ["teacher", "coach"]
        assert not any(notice in message.content for request in again.requests for message in request.messages)
        assert "level 2" in await talk.hold(topic="time")
        assert talk.socratic == Socratic(mode="coach", level=2, topic="time")


@pytest.mark.parametrize(
    ("text", "topic", "level"),
    [
        ("---\ntitle: x\ntopic: the  sun\nlevel: 2\n---\ntext", "the sun", 2),
        ("\ufeff---\ntopic: sun\nlevel: 4\n---\n", "sun", None),
        ("---\ntitle: x\n---\n", "", None),
        ("---\ntopic: [a]\nlevel: iron\n---\n", "", None),
        ("---\ntopic: a: b: c\n---\n", "", None),
        ("no front matter", "", None),
        ("", "", None),
    ],
)
def test_front_matter_states_topic_and_level(tmp_path: Path, text: str, topic: str, level: int | None) -> None:
    file = tmp_path / "lesson.md"
    file.write_text(text, encoding="utf-8")
    assert front_matter(file) == (topic, level)
    assert front_matter(tmp_path / "gone.md") == ("", None)

"""What a study session stores, whatever interrupts a turn."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from meta_agent_rag.chat.conversation import LONGEST_MESSAGE
from meta_agent_rag.chat.history import History
from meta_agent_rag.chat.session import open_chat, session_name
from meta_agent_rag.chat.store import Said, Sessions, Stored, open_sessions
from meta_agent_rag.chat.transcript import as_markdown
from meta_agent_rag.errors import InputError, StorageError
from meta_agent_rag.service.schemas import QUESTION_CHARACTERS
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in

HASHED = ("ENCODER=hash-64", "MONITOR_ENCODER=hash-64")
EXCHANGE = {"question": "q", "answer": "a", "standalone": "s"}


@dataclass(frozen=True, kw_only=True)
class PausingSessions(Sessions):
    """Stores a conversation, and pauses afterwards."""

    begun: asyncio.Event

    async def change(
        self,
        name: str,
        change: Callable[[Stored | None], Stored],
        said: Said | None = None,
        *,
        remembered: bool = True,
    ) -> tuple[Stored | None, Stored]:
        done = await super().change(name, change, said, remembered=remembered)
        self.begun.set()
        await asyncio.sleep(0.2)
        return done


async def test_a_turn_stopped_while_being_saved_is_forgotten_everywhere(tmp_path: Path) -> None:
    async with open_chat(settings_in(tmp_path, *HASHED), model=ScriptedModel({})) as study:
        begun = asyncio.Event()
        study.sessions = PausingSessions(path=study.sessions.path, begun=begun)
        turn = asyncio.ensure_future(study.reply("Who designed the Pennant Bridge?"))
        await begun.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert study.history.is_empty
        kept = await study.sessions.load(study.name)
        assert await study.said() == ()
    assert kept is not None
    assert kept.history.is_empty


async def test_a_turn_that_cannot_be_stored_is_forgotten_and_may_be_asked_again(tmp_path: Path) -> None:
    async with open_chat(settings_in(tmp_path, *HASHED), model=ScriptedModel({})) as study:
        path = study.sessions.path
        study.sessions = Sessions(path=tmp_path)  # a folder, which cannot be opened
        with pytest.raises(StorageError):
            await study.reply("Who designed the Pennant Bridge?")
        with pytest.raises(StorageError):
            await study.remember("Summarise it", "In short.")
        with pytest.raises(StorageError):
            await study.hold(mode="teacher")
        assert (study.history, study.sources, study.socratic.mode) == (History(), (), "")
        study.sessions = Sessions(path=path)
        await study.reply("Who designed the Pennant Bridge?")
        assert [one.turn for one in await study.said()] == [1]


async def test_two_chats_on_one_session_keep_the_turns_of_both(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, *HASHED)
    questions = [
        "Who designed the Pennant Bridge?",
        "Who built the mill?",
        "Where is the Salt Road?",
        "How long is it?",
    ]
    async with (
        open_chat(settings, model=ScriptedModel({})) as first,
        open_chat(settings, model=ScriptedModel({})) as second,
    ):
        for study, question in zip((first, second, second, first), questions, strict=True):
            await study.reply(question)
            await study.settle()
        assert [one.question for one in await first.said()] == questions
        assert [exchange.question for exchange in first.history.exchanges] == questions
        assert (await second.hold(mode="teacher")) != ""
        assert second.history == first.history
        await second.reset()
        await first.reply(questions[1])
    async with open_chat(settings, model=ScriptedModel({})) as third:
        assert [(one.turn, one.question) for one in third.history.exchanges] == [(1, questions[1])]
        assert [(one.turn, one.question) for one in await third.said()] == [(1, questions[1])]


async def test_an_open_chat_does_not_bring_back_a_deleted_session(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, *HASHED)
    async with (
        open_chat(settings, model=ScriptedModel({})) as study,
        open_sessions(settings.marag_data_dir) as sessions,
    ):
        await study.reply("Who designed the Pennant Bridge?")
        await sessions.drop(study.name)
        await study.reply("Who built the mill?")
        assert [one.question for one in study.history.exchanges] == ["Who built the mill?"]
        assert [one.question for one in await study.said()] == ["Who built the mill?"]
        stored = await sessions.load(study.name)
        assert stored is not None
        assert [one.question for one in stored.history.exchanges] == ["Who built the mill?"]


async def test_new_chats_about_different_corpora_cannot_share_a_session(tmp_path: Path) -> None:
    async with open_chat(settings_in(tmp_path, *HASHED), session="x", model=ScriptedModel({})) as study:
        await study.sessions.save("x", Stored(corpus="other", history=History().with_exchange(**EXCHANGE)))
        with pytest.raises(InputError, match="give another --session"):
            await study.reply("Who designed the Pennant Bridge?")
        assert study.history.is_empty


async def test_the_default_session_exists_for_the_longest_corpus_name(tmp_path: Path) -> None:
    async with open_sessions(tmp_path) as sessions:
        assert await sessions.load(session_name(None, "a" * 64)) is None


async def test_the_saved_conversation_contains_small_talk_in_order_with_modes(tmp_path: Path) -> None:
    async with open_chat(settings_in(tmp_path, *HASHED), model=ScriptedModel({})) as study:
        messages = ["Hello", "Who designed the Pennant Bridge?", "Thanks!", "Which documents do you have?"]
        for message in messages:
            await study.reply(message)
        await study.hold(mode="teacher")
        await study.reply("Who built the mill?")
        assert [(one.turn, one.mode) for one in await study.said()] == [
            (0, ""),
            (1, ""),
            (0, ""),
            (0, ""),
            (2, "teacher"),
        ]
        text = as_markdown(study.name, study.corpus, study.history, await study.said(), study.sources)
        headings = [line for line in text.splitlines() if line[:4] in {f"## {number}" for number in range(1, 10)}]
        assert headings[0] == "## 1. Hello (plain)"
        assert headings[4] == "## 5. Who built the mill? (teacher)"
        assert "Documents:\n- " in text
        with pytest.raises(InputError, match="The message has 1001 characters; use at most 1000"):
            await study.reply("a" * 1001)


async def test_transcripts_of_an_earlier_version_are_imported(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "sessions.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE transcripts (name, turn, question, answer, sources)")
        connection.execute("INSERT INTO transcripts VALUES ('x', 2, 'q', 'a', '[]')")
    async with open_sessions(tmp_path) as sessions:
        assert [(one.turn, one.question, one.mode) for one in await sessions.said("x")] == [(2, "q", "")]


def test_a_message_is_limited_like_a_question_to_the_service() -> None:
    assert LONGEST_MESSAGE == QUESTION_CHARACTERS

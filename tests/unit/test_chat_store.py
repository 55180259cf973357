"""Conversations stored by name: what is restored, what is rejected, and how large they grow."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.chat.history import History
from meta_agent_rag.chat.session import open_chat
from meta_agent_rag.chat.store import Sessions, Stored, open_sessions
from meta_agent_rag.errors import DataFileError, InputError, StorageError
from meta_agent_rag.grounding.citations import Citation, Scores
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in
from tests.talk import history_of

SOURCE = Citation(
    doc_id="d", passage_id="p", title="T", page=3, section=None, span=(1, 2), snippet="x", scores=Scores(score=0.5)
)
STORED = Stored(corpus="notes", history=history_of("In Oslo.", summary="Before."), sources=(SOURCE,))
FOLDER = "data"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Sessions]:
    async with open_sessions(folder / FOLDER) as sessions:
        yield sessions


async def saved_as(sessions: Sessions, name: str, stored: Stored) -> None:
    await sessions.change(name, lambda _: stored)


def rewritten(folder: Path, stored: object) -> None:
    """Replace the stored conversation by a value."""
    connection = sqlite3.connect(folder / FOLDER / "sessions.sqlite")
    with connection:
        connection.execute("UPDATE sessions SET stored = ?", (stored,))
    connection.close()


@pytest.mark.parametrize("stored", [b"\xc1\xff\x00", "", "null", '{"corpus": 3, "history": {}}'])
async def test_an_unreadable_session_is_reported_in_one_sentence(tmp_path: Path, stored: object) -> None:
    async with opened(tmp_path) as sessions:
        await saved_as(sessions, "talk", STORED)
    rewritten(tmp_path, stored)
    async with opened(tmp_path) as sessions:
        with pytest.raises(DataFileError, match="is damaged"):
            await sessions.load("talk")
        await sessions.drop("talk")
        await saved_as(sessions, "talk", STORED)
        assert await sessions.load("talk") == STORED


def as_text(path: Path) -> None:
    path.write_bytes(b"This is no database. " * 200)


def as_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("damage", [as_text, as_folder])
async def test_a_file_without_sessions_is_reported_in_one_sentence(tmp_path: Path, damage: Any) -> None:
    (tmp_path / FOLDER).mkdir(exist_ok=True)
    damage(tmp_path / FOLDER / "sessions.sqlite")
    with pytest.raises(StorageError, match=r"sessions\.sqlite.*cannot be read or written") as raised:
        async with opened(tmp_path) as sessions:
            await sessions.load("talk")
    assert "\n" not in str(raised.value)


HASHED = ("ENCODER=hash-64", "MONITOR_ENCODER=hash-64")
EXCHANGE = {"question": "q", "answer": "a", "standalone": "s"}


async def test_a_turn_that_cannot_be_stored_is_forgotten_and_may_be_asked_again(tmp_path: Path) -> None:
    async with open_chat(settings_in(tmp_path, *HASHED), model=ScriptedModel({})) as talk:
        assert talk.sessions is not None
        path = talk.sessions.path
        talk.sessions = Sessions(path=tmp_path)  # a folder, which cannot be opened
        with pytest.raises(StorageError):
            await talk.reply("Who designed the Pennant Bridge?")
        with pytest.raises(StorageError):
            await talk.hold(mode="teacher")
        assert (talk.history, talk.sources, talk.socratic.mode) == (History(), (), "")
        talk.sessions = Sessions(path=path)
        await talk.reply("Who designed the Pennant Bridge?")
        assert len(await talk.said()) == talk.history.turns == 1


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
        for talk, question in zip((first, second, second, first), questions, strict=True):
            await talk.reply(question)
            await talk.settle()
        assert [one.question for one in await first.said()] == questions
        assert [exchange.question for exchange in first.history.exchanges] == questions
        assert (await second.hold(mode="teacher")) != ""
        assert second.history == first.history
        await second.reset()
        await first.reply(questions[1])
    async with open_chat(settings, model=ScriptedModel({})) as third:
        assert [(one.turn, one.question) for one in third.history.exchanges] == [(1, questions[1])]
        assert [one.question for one in await third.said()] == [questions[1]]


async def test_new_chats_about_different_corpora_cannot_share_a_session(tmp_path: Path) -> None:
    async with open_chat(settings_in(tmp_path, *HASHED), session="x", model=ScriptedModel({})) as talk:
        assert talk.sessions is not None
        await saved_as(talk.sessions, "x", Stored(corpus="other", history=History().with_exchange(**EXCHANGE)))
        with pytest.raises(InputError, match="give another --session"):
            await talk.reply("Who designed the Pennant Bridge?")
        assert talk.history.is_empty
        with pytest.raises(InputError, match="The message has 1001 characters; use at most 1000"):
            await talk.reply("a" * 1001)

"""Conversations stored by name: what is restored, what is rejected, and how large they grow."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks
from meta_agent_rag.chat.answerer import GroundedAnswerer
from meta_agent_rag.chat.conversation import Conversation
from meta_agent_rag.chat.history import History
from meta_agent_rag.chat.session import ChatSession, open_chat
from meta_agent_rag.chat.store import Sessions, Stored, open_sessions
from meta_agent_rag.errors import DataFileError, InputError, MetaRagError, RefusedError, StorageError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Found
from meta_agent_rag.testing import ScriptedModel
from tests.loop import BIRTH_SENTENCE, EVIDENCE, draft, second_answer, settings_in
from tests.talk import echoed, history_of

SOURCE = {"doc_id": "birth", "span": [0, 26], "page": None, "scores": {"score": 1.0, "dense": None}}
STORED = Stored(corpus="notes", history=history_of("In Oslo.", summary="Before."), sources=(SOURCE,))
FOLDER = "data"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Sessions]:
    async with open_sessions(folder / FOLDER) as sessions:
        yield sessions


def rows(folder: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(folder / FOLDER / "sessions.sqlite")
    try:
        with connection:
            return connection.execute(query).fetchall()
    finally:
        connection.close()


async def saved(folder: Path, name: str = "talk", stored: Stored = STORED) -> None:
    async with opened(folder) as sessions:
        await sessions.save(name, stored)


async def test_concurrent_openers_of_a_new_file_wait_for_each_other(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(exist_ok=True)
    other = sqlite3.connect(tmp_path / FOLDER / "sessions.sqlite", isolation_level=None)
    other.execute("CREATE TABLE first (value)")
    other.execute("BEGIN IMMEDIATE")

    async def use() -> None:
        async with opened(tmp_path) as sessions:
            await sessions.save("mine", STORED)

    using = asyncio.create_task(use())
    await asyncio.sleep(0.3)
    other.execute("COMMIT")
    other.close()
    await using


async def test_a_conversation_is_restored_over_another_connection(tmp_path: Path) -> None:
    await saved(tmp_path)
    async with opened(tmp_path) as sessions:
        assert await sessions.load("talk") == STORED
        assert await sessions.load("another") is None
        longer = replace(STORED, history=STORED.history.with_exchange(question="q", answer="a", standalone="s"))
        await sessions.save("talk", longer)
    async with opened(tmp_path) as again:
        assert await again.load("talk") == longer


async def test_concurrent_saves_keep_one_whole_conversation(tmp_path: Path) -> None:
    async with opened(tmp_path) as sessions:
        await sessions.save("talk", STORED)
        stored = [replace(STORED, corpus=f"corpus {number}") for number in range(8)]
        await asyncio.gather(*(sessions.save("talk", one) for one in stored))
        assert await sessions.load("talk") in stored


async def test_names_are_listed_and_deleted(tmp_path: Path) -> None:
    other = Stored(corpus="sample", history=History())
    async with opened(tmp_path) as sessions:
        await sessions.save("b", STORED)
        await sessions.save("a", other)
        assert await sessions.names() == ["a", "b"]
        assert await sessions.load("a") == other
        await sessions.drop("a")
        assert await sessions.names() == ["b"]
        assert await sessions.load("a") is None
        assert await sessions.load("b") == STORED


@pytest.mark.parametrize("name", ["", " ", "../talk", "-talk", ".talk", "a/b", "a b", "t\n", "\u00e9t\u00e9", "a" * 73])
async def test_an_invalid_name_is_rejected(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as sessions:
        for work in (sessions.load(name), sessions.save(name, STORED)):
            with pytest.raises(InputError, match="A session cannot be named"):
                await work
        assert await sessions.names() == []


async def test_a_session_is_stored_in_one_row(tmp_path: Path) -> None:
    async with opened(tmp_path) as sessions:
        await sessions.save("other", STORED)
        for turn in range(1, 51):
            await sessions.save("talk", replace(STORED, history=replace(STORED.history, turns=turn)))
    assert rows(tmp_path, "SELECT name FROM sessions ORDER BY name") == [("other",), ("talk",)]
    async with opened(tmp_path) as again:
        stored = await again.load("talk")
        assert stored is not None
        assert stored.history.turns == 50


def rewritten(folder: Path, stored: object) -> None:
    """Replace the stored conversation by a value."""
    connection = sqlite3.connect(folder / FOLDER / "sessions.sqlite")
    with connection:
        connection.execute("UPDATE sessions SET stored = ?", (stored,))
    connection.close()


@pytest.mark.parametrize(
    "values",
    [
        {"corpus": 3},
        {"sources": "none"},
        {"history": None},
        {"history": [1]},
        {"history": {"exchanges": "x", "summary": "", "turns": 1, "dropped": 0}},
        {"sources": ["none"]},
        {"sources": [{"doc_id": 3}, 4]},
    ],
)
async def test_a_damaged_state_is_reported_in_one_sentence(tmp_path: Path, values: dict[str, object]) -> None:
    await saved(tmp_path)
    rewritten(tmp_path, json.dumps({**json.loads(STORED.as_json()), **values}))
    async with opened(tmp_path) as sessions:
        with pytest.raises(DataFileError, match=r"start (another|a new)") as raised:
            await sessions.load("talk")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("stored", [b"", b"\xc1\xff\x00", "", "{", "null"])
async def test_an_unreadable_session_is_reported_in_one_sentence(tmp_path: Path, stored: object) -> None:
    await saved(tmp_path)
    rewritten(tmp_path, stored)
    async with opened(tmp_path) as sessions:
        with pytest.raises(DataFileError, match="is damaged"):
            await sessions.load("talk")
        await sessions.drop("talk")
        await sessions.save("talk", STORED)
        assert await sessions.load("talk") == STORED


CHECKPOINTS = (
    "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, type TEXT, checkpoint BLOB)",
    "CREATE TABLE writes (thread_id TEXT, checkpoint_id TEXT, value BLOB)",
)


class ForeignObject:
    """An object of a foreign module, which records when it is deserialised."""

    alive = 0

    def __init__(self, name: str = "", corpus: str = "") -> None:
        type(self).alive += 1

    @property
    def model_dump(self) -> Any:
        return lambda: {"name": "intruder", "corpus": "notes"}


async def test_conversations_of_version_0_1_are_migrated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FOLDER).mkdir(exist_ok=True)
    lenient = JsonPlusSerializer(allowed_msgpack_modules=True)
    foreign = ForeignObject()
    values = {**json.loads(STORED.as_json()), "history": {**json.loads(STORED.as_json())["history"], "version": 1}}
    states = {
        "talk": [{**values, "corpus": "earlier"}, values],
        "damaged": [{"corpus": 3}],
        "foreign": [{**values, "corpus": foreign}],
    }
    connection = sqlite3.connect(tmp_path / FOLDER / "sessions.sqlite")
    with connection:
        for table in CHECKPOINTS:
            connection.execute(table)
        for name, kept in states.items():
            for number, state in enumerate(kept):
                checkpoint = {"channel_values": state, "ts": f"2026-10-0{number + 1}T00:00:00+00:00"}
                row = (name, "", f"id-{number}", *lenient.dumps_typed(checkpoint))
                connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", row)
    connection.close()
    before = ForeignObject.alive
    for _ in range(2):
        async with opened(tmp_path) as sessions:
            assert [one.name for one in await sessions.listed()] == ["talk"]
            assert await sessions.names() == ["damaged", "foreign", "talk"]
            assert await sessions.load("talk") == STORED
            with pytest.raises(DataFileError, match="'foreign' is damaged"):
                await sessions.load("foreign")
            assert await sessions.unused_since(datetime(2026, 10, 3, tzinfo=UTC)) == ["talk"]
            assert await sessions.unused_since(datetime(2026, 10, 2, tzinfo=UTC)) == []
    assert ForeignObject.alive == before
    assert rows(tmp_path, "SELECT name FROM sqlite_master WHERE type = 'table'") == [("sessions",), ("spoken",)]
    said = "2 conversations of an earlier version cannot be read."
    assert [record.getMessage() for record in caplog.records].count(said) == 1


def as_text(path: Path) -> None:
    path.write_bytes(b"This is no database. " * 200)


def as_folder(path: Path) -> None:
    path.mkdir()


def as_other_tables(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE checkpoints (a TEXT)")
    connection.close()


@pytest.mark.parametrize("damage", [as_text, as_folder, as_other_tables])
async def test_a_file_without_sessions_is_reported_in_one_sentence(tmp_path: Path, damage: Any) -> None:
    (tmp_path / FOLDER).mkdir(exist_ok=True)
    damage(tmp_path / FOLDER / "sessions.sqlite")
    with pytest.raises(StorageError, match=r"sessions\.sqlite.*cannot be read or written") as raised:
        async with opened(tmp_path) as sessions:
            await sessions.load("talk")
    assert "\n" not in str(raised.value)


async def test_a_file_in_place_of_the_data_folder_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here first")
    with pytest.raises(StorageError, match=r"'.*file.*cannot be"):
        async with open_sessions(tmp_path / "file" / "below"):
            pass


async def test_a_session_about_another_corpus_is_rejected(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / FOLDER, "ENCODER=hash-64", "MONITOR_ENCODER=hash-64")
    await saved(tmp_path)
    with pytest.raises(InputError, match="'talk' is about the corpus 'notes', not 'sample'"):
        async with open_chat(settings, corpus="sample", session="talk", model=ScriptedModel()):
            pass
    with pytest.raises(InputError, match="cannot be named 'a/b'"):
        async with open_chat(settings, session="a/b", model=ScriptedModel()):
            pass


class FixedRetriever:
    """Returns the same passages for every query."""

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        return Retrieval(found=tuple(Found(passage=item, score=1.0, dense=0.9) for item in EVIDENCE))


def writer() -> ScriptedModel:
    return ScriptedModel({
        "write": draft("Oslo", quotes=[BIRTH_SENTENCE], answer="Mira Holt was born in Oslo [2]."),
        "second_answer": second_answer("Oslo"),
        "rewrite_query": echoed,
        "summarize": "They spoke about Mira Holt. " * 200,
    })  # fmt: skip


@asynccontextmanager
async def study(folder: Path, model: ScriptedModel) -> AsyncIterator[ChatSession]:
    """A study session over the passages of `tests.loop`, resumed if it exists."""
    settings = settings_in(folder / FOLDER)
    encoder = AsyncEncoder(HashEncoder())
    async with (
        opened(folder) as sessions,
        open_engine(settings, model=model, monitor_encoder=encoder) as engine,
    ):
        stored = await sessions.load("talk")
        companion = GroundedAnswerer(engine=engine, retriever=FixedRetriever(), checks=Checks.of(settings, "notes"))
        history = stored.history if stored is not None else None
        yield ChatSession(
            name="talk",
            corpus="notes",
            conversation=Conversation.open(engine.model, companion, history),
            sessions=sessions,
            sources=stored.sources if stored is not None else (),
        )


FOLLOW_UP = "And where was she born?"


async def test_a_study_resumes_where_it_stopped(tmp_path: Path) -> None:
    async with study(tmp_path, writer()) as first:
        await first.reply("Where was Mira Holt born?")
        await first.settle()
        assert first.totals.calls == len(first.calls) == 2
    model = writer()
    async with study(tmp_path, model) as second:
        assert second.history == first.history
        assert second.sources == first.sources
        assert second.sources[0]["doc_id"] == "birth"
        assert second.sources[0]["snippet"] == BIRTH_SENTENCE
        await second.reply(FOLLOW_UP)
        (asked,) = model.asked("rewrite_query")
        assert "Mira Holt was born in Oslo" in asked.messages[-1].content
        await second.reset()
    async with study(tmp_path, writer()) as third:
        assert third.history == History()
        assert third.sources == ()


async def test_failed_turns_are_not_stored_and_small_talk_only_in_the_transcript(tmp_path: Path) -> None:
    model = ScriptedModel({"write": RefusedError("busy")})
    async with study(tmp_path, model) as talk:
        with pytest.raises(MetaRagError, match="busy"):
            await talk.reply("Where was Mira Holt born?")
        assert await talk.sessions.load("talk") is None
        await talk.reply("Thanks!")
        assert talk.history == History()
        assert [(one.turn, one.question) for one in await talk.said()] == [(0, "Thanks!")]


@pytest.mark.slow
async def test_memory_and_prompts_do_not_grow_over_500_turns(tmp_path: Path) -> None:
    model = writer()
    tokens: list[int] = []
    stored: list[int] = []
    folds: list[int] = []
    size = "SELECT sum(length(stored)) FROM sessions"
    async with study(tmp_path, model) as talk:
        for turn in range(1, 501):
            before = len(model.asked("summarize")) if turn % 4 == 0 else -1
            spent = len(talk.calls)
            await talk.reply("Where was Mira Holt born?" if turn == 1 else FOLLOW_UP)
            tokens.append(sum(row.prompt_tokens for row in talk.calls[spent:]))
            await talk.settle()
            assert len(talk.history.exchanges) <= 7
            if before >= 0 and len(model.asked("summarize")) > before:
                folds.append(turn)
            if turn in {50, 498}:
                stored.append(rows(tmp_path, size)[0][0])
    assert talk.history.turns == 500
    assert folds == list(range(8, 501, 4))
    assert len(model.asked("summarize")) == len(folds) == 124
    assert len(model.asked("rewrite_query")) == 499
    # the same number of exchanges precedes turns 50 and 498, and no prompt holds the turn's number
    assert tokens[49] == tokens[497]
    assert max(tokens[400:]) == max(tokens[10:100])
    assert tokens[499] <= max(tokens[40:60])
    assert stored[1] - stored[0] < 50
    on_disk = sum(file.stat().st_size for file in (tmp_path / FOLDER).glob("sessions.sqlite*"))
    assert on_disk < 5_000_000

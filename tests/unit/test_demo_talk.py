"""What the demo's conversations show: steps without draft text, sources, uploads, the coach's trace."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.engine import Step
from meta_agent_rag.chat.coach.coach import CoachReply
from meta_agent_rag.chat.coach.levels import Socratic
from meta_agent_rag.chat.history import History
from meta_agent_rag.chat.session import ChatSession
from meta_agent_rag.demo.private_corpus import MOST_FILES, PrivateCorpus
from meta_agent_rag.demo.streams import Finished, Streams, StreamStopped, watched
from meta_agent_rag.demo.talk import (
    STOPPED,
    ChatUpdate,
    ProgressMessages,
    beside,
    celebration,
    measured,
    moments,
    reading,
    rules,
    sources,
    stoppable_moments,
    stopped,
    taken,
)
from meta_agent_rag.errors import InputError, UnreachableError
from meta_agent_rag.ingestion.sources import IngestProgress
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import ScriptedModel
from tests.coach import EXPLAINED, coaching, reply
from tests.loop import settings_in
from tests.talk import FakeAnswerer, conversation

COURSE = Path(__file__).parents[2] / "docs" / "examples" / "course"
HOSTILE = "<img src=http://example.com/x> & 'so on'"


async def test_watched_work_reports_progress_returns_its_result_and_ends_with_the_stream() -> None:
    ended: list[str] = []

    async def work(tell: Callable[[int], None]) -> str:
        try:
            tell(1)
            await asyncio.sleep(0)
            tell(2)
            return "three"
        finally:
            ended.append("work")

    assert [event async for event in watched(work)] == [1, 2, Finished(result="three")]

    async def endless(tell: Callable[[int], None]) -> None:
        tell(1)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("endless")

    stream = watched(endless)
    assert await anext(stream) == 1
    await stream.aclose()
    assert ended == ["work", "endless"]

    async def failing(tell: Callable[[int], None]) -> None:
        raise InputError("No.")

    with pytest.raises(InputError, match="No"):
        await anext(watched(failing))


async def counting(ended: list[str], *, fault: Exception | None = None) -> AsyncGenerator[int, None]:
    try:
        yield 1
        if fault is not None:
            raise fault
        await asyncio.Event().wait()
    finally:
        ended.append("stream")


async def test_a_visitor_has_one_stream_at_a_time() -> None:
    streams, ended = Streams(), list[str]()
    stopped_, other = streams.run("one", counting(ended)), streams.run("two", counting(ended))
    assert (await anext(stopped_), await anext(other)) == (1, 1)
    assert streams.busy("one")
    streams.stop("one")
    assert not streams.busy("one")
    assert [item async for item in stopped_] == [StreamStopped()]
    assert ended == ["stream"]
    second = streams.run("two", counting(ended))
    rest = asyncio.create_task(anext(other, "nothing more"))
    assert await anext(second) == 1
    assert await rest == "nothing more"
    streams.leave("two")
    assert [item async for item in second] == []
    assert len(ended) == 3
    streams.stop("two")
    await streams.drop("nobody")
    with pytest.raises(InputError, match="No"):
        assert [item async for item in streams.run("one", counting(ended, fault=InputError("No.")))]


async def test_the_newest_waiting_stream_runs_unless_its_page_is_closed() -> None:
    streams, ended = Streams(), list[str]()
    first = streams.run("one", counting(ended))
    assert await anext(first) == 1
    older, newer = streams.run("one", counting(ended)), streams.run("one", counting(ended))
    waiting = [asyncio.create_task(anext(stream, "nothing")) for stream in (older, newer)]
    await asyncio.sleep(0)
    assert [item async for item in first] == []
    assert [await one for one in waiting] == ["nothing", 1]
    late = streams.run("one", counting(ended))
    arriving = asyncio.create_task(anext(late, "nothing"))
    await asyncio.sleep(0)
    streams.leave("one")
    assert [item async for item in newer] == []
    assert await arriving == "nothing"
    assert not streams.busy("one")
    assert ended == ["stream"] * 2, "a stream that never had its turn never started"


async def test_a_stopped_message_is_not_remembered(tmp_path: Path) -> None:
    streams = Streams()
    async with conversation(tmp_path, ScriptedModel(), answerer=FakeAnswerer()) as opened:

        async def opening(history: History, tell: Callable[[Step], None]) -> ChatSession:
            tell(Step(node="retrieve", rounds=()))
            await asyncio.Event().wait()
            return opened

        stream = stoppable_moments(streams, "one", opening, "Where was Mira Holt born?", History())
        while (await anext(stream)).messages[-1]["metadata"]["title"] != "Retrieving":
            pass
        streams.stop("one")
        (last,) = [moment async for moment in stream]
    assert last.is_last
    assert last.history is None
    assert last.messages[-1]["content"] == STOPPED
    assert [message["metadata"]["status"] for message in last.messages[1:-1]] == ["done", "done"]


async def shown(opened: ChatSession, message: str) -> list[ChatUpdate]:
    async def opening(history: History, tell: Callable[[Step], None]) -> ChatSession:
        tell(Step(node="retrieve", rounds=()))
        return opened

    return [moment async for moment in moments(opening, message, opened.history)]


async def test_an_answer_follows_its_steps_and_is_remembered_last(tmp_path: Path) -> None:
    async with conversation(tmp_path, ScriptedModel(), answerer=FakeAnswerer(text=HOSTILE)) as opened:
        first, step, answered, last = await shown(opened, "Where was Mira Holt born?")
    assert [message["role"] for message in first.messages] == ["user", "assistant"]
    assert step.messages[-1]["metadata"]["title"] == "Retrieving"
    assert answered.messages[-1]["content"] == "&lt;img src=http://example.com/x&gt; &amp; 'so on'"
    assert not [one for one in answered.messages if (one.get("metadata") or {}).get("status") == "pending"]
    assert answered.history is None
    assert last.is_last
    assert last.history is not None
    assert last.history.turns == 1


async def test_an_error_is_shown_and_nothing_is_remembered(tmp_path: Path) -> None:
    fault = UnreachableError("The server does not answer; start it.")
    async with conversation(tmp_path, ScriptedModel(), answerer=FakeAnswerer(fault=fault)) as opened:
        last = (await shown(opened, "Where was Mira Holt born?"))[-1]
        assert opened.history == History()
    assert last.is_last
    assert last.history is None
    assert last.messages[-1]["content"] == "The server does not answer; start it."
    assert last.messages[1]["metadata"]["status"] == "done"


def test_a_stopped_conversation_has_no_pending_step() -> None:
    trail = ProgressMessages(id="1")
    trail.begin(Step(node="retrieve", rounds=()))
    ended = stopped(trail.messages)
    assert [message["metadata"]["status"] for message in ended[:-1]] == ["done", "done"]
    assert ended[-1]["content"] == STOPPED
    assert trail.steps[0]["metadata"]["parent_id"] == trail.parent["metadata"]["id"]


async def coached(folder: Path, *drafts: Any, message: str = "Why does the shadow move?", level: int = 1) -> Any:
    async with coaching(folder, ScriptedModel({"coach": list(drafts)}), level=level) as talk:
        turn = await talk.reply(message)
    assert isinstance(turn.reply, CoachReply)
    return turn


async def test_the_coachs_reply_has_a_meter_and_an_explanation_on_demand(tmp_path: Path) -> None:
    turn = await coached(tmp_path, reply(EXPLAINED), reply("What <b>moves</b>?"), level=3)
    html = beside(turn, 3)
    assert "18 of 80 characters" in html
    assert "the second one followed them and was shown" in html
    assert EXPLAINED[:40] in html
    assert "What &lt;b&gt;moves&lt;/b&gt;?" in html
    assert "<b>" not in html
    assert html.index("Draft 1") < html.index("Reason") < html.index("Draft 2") < html.index("Shown")
    assert celebration(turn) == ""


async def test_confetti_marks_right_answers_and_varies_each_time(tmp_path: Path) -> None:
    turn = await coached(tmp_path, reply("That's right. What follows?", right=True), message="The Earth turns.")
    first, second = celebration(turn), celebration(turn)
    assert "You found it yourself" in first
    assert 'aria-hidden="true"' in first
    assert first != second
    assert celebration(None) == ""


def test_rules_and_meter_follow_the_level() -> None:
    assert "Level 2, silence:</strong> at most 120" in rules(Socratic(mode="coach", level=2))
    assert "teacher explains" in rules(Socratic(mode="teacher"))
    assert "width:50%" in measured("x" * 40, 80)
    assert "m-over" in measured("x" * 81, 80)
    assert "m-over" not in measured("x" * 80, 80)


def test_every_view_has_a_placeholder_before_the_first_message() -> None:
    assert "appear here" in sources(None)
    assert "measured here" in beside(None, 1)
    assert "file 1 of 2" in reading(IngestProgress(files=0, of_files=2, passages=0, of_passages=0))
    assert "3 of 8 passages" in reading(IngestProgress(files=2, of_files=2, passages=3, of_passages=8))


@pytest.mark.slow
async def test_a_shelf_holds_the_documents_of_one_visitor_until_they_leave(tmp_path: Path) -> None:
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    (uploads / "note.md").write_text("# The Salt Road\n\nThe Salt Road is a film that Mira Holt directed.\n")
    (uploads / "copy.md").write_text("# The Salt Road\n\nThe Salt Road is a film that Mira Holt directed.\n")
    (uploads / "empty <b>.txt").write_text("")
    below = tmp_path / "visits"
    settings, encoder = settings_in(tmp_path, "ENCODER=hash-64"), AsyncEncoder(HashEncoder())
    mine, other = (PrivateCorpus.below(below, settings, encoder) for _ in range(2))
    progress: list[IngestProgress] = []
    report = await mine.add(sorted(uploads.iterdir()), progress.append, take=True)
    html = taken(report)
    assert "<strong>note.md</strong>: <span" in html or "<strong>copy.md</strong>: <span" in html
    assert "the same content as" in html
    assert "empty &lt;b&gt;.txt</strong>: <span" in html
    assert str(tmp_path) not in html
    assert len(list(uploads.iterdir())) == 3, "another visitor's may be the same files"
    assert progress[-1].files == 3
    found = (await mine.retrieve(["film"], k=5)).found
    assert [one.passage.title for one in found] == ["The Salt Road"]
    for director in ("Ada Roth", "Bo Lind"):
        (uploads / "plan.md").write_text(f"# Two Lamps\n\nTwo Lamps is a film that {director} directed.\n")
        await mine.add([uploads / "plan.md"], take=True)
    texts = " ".join(one.passage.text for one in (await mine.retrieve(["Two Lamps"], k=5)).found)
    assert ("Bo Lind" in texts, "Ada Roth" in texts) == (True, False), "a known name refers to the newest file"
    (tmp_path / "twin").mkdir()
    (uploads / "same.md").write_text("# Oar\n\nOar is a play.\n")
    (tmp_path / "twin" / "same.md").write_text("# Reed\n\nReed is a play.\n")
    await mine.add([uploads / "same.md", tmp_path / "twin" / "same.md"], take=True)
    assert (await mine.files()).count("same.md") == 2, "files uploaded together do not replace each other"
    assert mine.folder != other.folder
    with pytest.raises(InputError, match=f"at most {MOST_FILES}"):
        await mine.add([tmp_path / "x.md"] * MOST_FILES)
    mine.remove()
    other.remove()
    assert not list(below.iterdir())


async def test_the_course_is_ingested_in_place_with_topics(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "ENCODER=hash-64")
    course = PrivateCorpus.below(tmp_path, settings, AsyncEncoder(HashEncoder()))
    await course.add(sorted(COURSE.glob("*.md")))
    assert len(await course.files()) == len(list(COURSE.glob("*.md"))) == 6
    assert [topic.name for topic in (await course.subject()).topics] == ["seasons", "sundials", "time"]

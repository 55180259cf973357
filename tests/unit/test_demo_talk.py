"""What the demo's conversations show: steps without draft text, uploads, the coach's trace; one activity a visitor."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.engine import Step
from meta_agent_rag.chat.session import ChatSession
from meta_agent_rag.demo.private_corpus import MOST_FILES, PrivateCorpus
from meta_agent_rag.demo.tabs.tab import Activities, Tell
from meta_agent_rag.demo.tabs.talk import STOPPED, beside, replying, taken
from meta_agent_rag.errors import InputError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import ScriptedModel
from tests.coach import EXPLAINED, coaching, reply
from tests.loop import settings_in
from tests.talk import FakeAnswerer, conversation

HOSTILE = "<img src=http://example.com/x> & 'so on'"


def counting(ended: list[str], *, fault: Exception | None = None) -> Callable[[Tell], Coroutine[Any, Any, None]]:
    async def work(tell: Tell) -> None:
        try:
            tell({"count": 1})
            if fault is not None:
                raise fault
            await asyncio.Event().wait()
        finally:
            ended.append("work")
            tell({"count": 0})

    return work


async def test_a_visitor_has_one_activity_at_a_time() -> None:
    activities, ended = Activities(), list[str]()
    stopped, other = activities.run("one", counting(ended)), activities.run("two", counting(ended))
    assert (await anext(stopped), await anext(other)) == ({"count": 1}, {"count": 1})
    assert activities.busy("one")
    activities.stop("one")
    assert not activities.busy("one")
    assert [updates async for updates in stopped] == [{"count": 0}], "stopped work tells of its end"
    second = activities.run("two", counting(ended))
    rest = asyncio.create_task(anext(other, "nothing more"))
    assert await anext(second) == {"count": 1}
    assert await rest == "nothing more", "replaced work does not"
    activities.leave("two")
    assert [updates async for updates in second] == []
    assert len(ended) == 3
    activities.stop("two")
    await activities.drop("nobody")
    with pytest.raises(InputError, match="No"):
        assert [one async for one in activities.run("one", counting(ended, fault=InputError("No.")))]


async def asked(opened: ChatSession, told: list[dict[str, Any]], *, waits: bool = False) -> None:
    async def opening(on_step: Callable[[Step], None]) -> ChatSession:
        on_step(Step(node="retrieve", rounds=()))
        if waits:
            await asyncio.Event().wait()
        return opened

    await replying(opening, "Where was Mira Holt born?", lambda *_: {}, lambda new: told.append({**new}))


async def test_an_answer_follows_its_steps_and_is_remembered_last(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    async with conversation(tmp_path, ScriptedModel(), answerer=FakeAnswerer(text=HOSTILE)) as opened:
        await asked(opened, told)
    first, step, answered, last = told
    assert [message["role"] for message in first["talk"]][:2] == ["user", "assistant"]
    assert step["talk"][-1]["metadata"] == {"title": "Retrieving", "status": "pending"}
    assert answered["talk"][-1]["content"] == "&lt;img src=http://example.com/x&gt; &amp; 'so on'"
    assert not [one for one in last["talk"] if (one.get("metadata") or {}).get("status") == "pending"]
    assert [one["idle"] for one in told] == [False, False, False, True]
    assert "history" not in answered
    assert last["history"].turns == 1


async def test_a_stopped_message_is_not_remembered(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    async with conversation(tmp_path, ScriptedModel(), answerer=FakeAnswerer()) as opened:
        work = asyncio.create_task(asked(opened, told, waits=True))
        await asyncio.sleep(0)
        work.cancel()
        await asyncio.wait([work])
    assert "history" not in told[-1]
    assert told[-1]["talk"][-1]["content"] == STOPPED
    assert told[-1]["talk"][1]["metadata"]["status"] == "done"


async def test_a_coachs_draft_never_becomes_markup(tmp_path: Path) -> None:
    model = ScriptedModel({"coach": [reply(EXPLAINED), reply("What <b>moves</b>?")]})
    async with coaching(tmp_path, model, level=3) as talk:
        html = beside(await talk.reply("Why does the shadow move?"), 3)
    assert "What &lt;b&gt;moves&lt;/b&gt;?" in html
    assert "<b>" not in html


@pytest.mark.slow
async def test_a_private_corpus_holds_the_documents_of_one_visitor_until_they_leave(tmp_path: Path) -> None:
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    (uploads / "note.md").write_text("# The Salt Road\n\nThe Salt Road is a film that Mira Holt directed.\n")
    (uploads / "copy.md").write_text("# The Salt Road\n\nThe Salt Road is a film that Mira Holt directed.\n")
    (uploads / "empty <b>.txt").write_text("")
    below = tmp_path / "visits"
    settings, encoder = settings_in(tmp_path, "ENCODER=hash-64"), AsyncEncoder(HashEncoder())
    mine, other = (PrivateCorpus.below(below, settings, encoder) for _ in range(2))
    report = await mine.add(sorted(uploads.iterdir()))
    html = taken(report)
    assert "<strong>note.md</strong>: <span" in html or "<strong>copy.md</strong>: <span" in html
    assert "the same content as" in html
    assert "empty &lt;b&gt;.txt</strong>: <span" in html
    assert str(tmp_path) not in html
    assert len(list(uploads.iterdir())) == 3, "another visitor's may be the same files"
    found = (await mine.retrieve(["film"], k=5)).found
    assert [one.passage.title for one in found] == ["The Salt Road"]
    for director in ("Ada Roth", "Bo Lind"):
        (uploads / "plan.md").write_text(f"# Two Lamps\n\nTwo Lamps is a film that {director} directed.\n")
        await mine.add([uploads / "plan.md"])
    texts = " ".join(one.passage.text for one in (await mine.retrieve(["Two Lamps"], k=5)).found)
    assert ("Bo Lind" in texts, "Ada Roth" in texts) == (True, False), "a known name refers to the newest file"
    await mine.discard("plan.md")
    assert "plan.md" not in await mine.files()
    assert "Two Lamps" not in " ".join(one.passage.text for one in (await mine.retrieve(["Two Lamps"], k=5)).found)
    with pytest.raises(InputError, match=f"at most {MOST_FILES}"):
        await mine.add([tmp_path / f"{number}.md" for number in range(MOST_FILES)])
    mine.remove()
    other.remove()
    assert not list(below.iterdir())

"""The tabs Chat and Coach as a visitor sees them, in Chromium."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from meta_agent_rag.demo import private_corpus as private
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.testing.scripted import Line
from meta_agent_rag.testing.server import LoopbackServer, ServerReply, always, hanging, loopback_server, quoting
from tests.coach import EXPLAINED, reply
from tests.loop import BIRTH_SENTENCE, draft, second_answer

from .conftest import ENCODERS, PATIENCE, OpenPage, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

HOSTILE = '<img src="http://example.com/x.png"> ![](http://example.com/y.png)'
"""Content that a document or model may include; the fixture detects any request for it."""


def written(request: Request) -> Line:
    asked = request.messages[-1].content.rpartition("Question: ")[2].partition("\n")[0]
    if "Mira Holt" not in asked:
        return {**draft("NOT FOUND", answer="NOT FOUND"), "quotes": []}
    return draft("Oslo", quotes=[BIRTH_SENTENCE], answer=f"Mira Holt was born in Oslo [1]. {HOSTILE}")


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    """A model server whose behaviour the test sets."""
    with loopback_server(quoting()) as started:
        yield started


@pytest.fixture(scope="module")
def url(browser: "Browser", server: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A demo that calls the model server."""
    with served(tmp_path_factory.mktemp("remote"), None, f"LLM_BASE_URL={server.base_url}", *ENCODERS) as started:
        yield started


def until(condition: Callable[[], bool]) -> None:
    """Wait until another thread makes the condition true."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def say(page: "Page", tab: str, words: str, button: str) -> None:
    page.locator(f"#{tab}-message textarea").fill(words)
    page.click(f"#{tab}-{button}")


async def never_read(*_files: object, **_options: object) -> None:
    """Stand-in for `ingest`: a file that takes longer than any visitor waits."""
    await asyncio.Event().wait()


def test_uploaded_documents_are_answered_from_with_sources(
    visit: OpenPage, model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script = {
        "write": written,
        "rewrite": written,
        "second_answer": second_answer("Oslo"),
        "rewrite_query": {"intent": "question", "standalone": "Who?"},
    }
    (tmp_path / "holt.md").write_text(f"# Mira Holt\n\n{BIRTH_SENTENCE} {HOSTILE}\n")
    (tmp_path / "late.md").write_text(f"# late\n\n{BIRTH_SENTENCE}\n")
    (tmp_path / "empty.txt").write_text("")
    page = visit("?tab=chat")
    talk, files, upload = (page.locator(f"#chat-{part}") for part in ("talk", "files", "upload"))
    model.seconds = 60.0
    say(page, "chat", "How tall is Stag Skerry Light?", "ask")
    talk.get_by_text("Writing", exact=False).first.wait_for()
    upload.locator("input[type=file]").set_input_files([tmp_path / "holt.md", tmp_path / "empty.txt"])
    files.get_by_text("holt.md: added").wait_for()
    assert talk.get_by_text("Stag Skerry").count() == 0, "an upload cancels an answer"
    assert "empty.txt: rejected" in files.inner_text()
    assert str(tmp_path) not in files.inner_text()
    with monkeypatch.context() as held:
        held.setattr(private, "ingest", never_read)  # a small file would finish before the click
        upload.locator("input[type=file]").set_input_files([tmp_path / "late.md"])
        files.get_by_text("Reading the files.").wait_for()
        assert page.locator("#chat-ask").is_disabled()
        page.click("#chat-stop")
        files.get_by_text("Your documents: holt.md.").wait_for()
        page.locator("#chat-ask:enabled").wait_for()
    assert page.locator("#chat-corpus input").input_value() == "Your documents"
    model.seconds = 0.0
    say(page, "chat", "Where was Mira Holt born?", "ask")
    talk.get_by_text("Mira Holt was born in Oslo [Mira Holt]").wait_for()
    talk.get_by_text("Checked: confidence").wait_for()
    cited = page.locator("#chat-sources").inner_text()
    assert "Confidence" in cited
    assert BIRTH_SENTENCE in cited
    page.locator("#chat-ask:enabled").wait_for()
    say(page, "chat", "Which colour is the moon at noon?", "ask")
    talk.get_by_text("Not answered, ").wait_for()
    assert "Oslo" not in page.locator("#chat-sources").inner_text()
    page.locator("#chat-ask:enabled").wait_for()
    page.click("#chat-reset")
    talk.get_by_text("Ask the documents").wait_for()


def test_the_coach_keeps_its_level_and_acknowledges_the_right_answer(visit: OpenPage, model: ScriptedModel) -> None:
    right = reply("That's right. What follows for noon?", right=True)
    model.script = {"coach": [reply(EXPLAINED), reply("What stands still, stick or Sun?"), right]}
    page = visit("?tab=coach", width=390)
    talk, beside = page.locator("#coach-talk"), page.locator("#coach-beside")
    page.locator("#coach-level input[type=range]").press("End")
    page.locator("#coach-rules", has_text="Level 3, iron mask: at most 80 characters").wait_for()
    say(page, "coach", "Why does the shadow move over a sundial?", "say")
    talk.get_by_text("What stands still, stick or Sun?").wait_for()
    beside.get_by_text("32 of 80 characters").wait_for()
    assert EXPLAINED[:30] not in beside.inner_text()
    beside.locator("summary").click()
    assert EXPLAINED[:30] in beside.inner_text()
    assert EXPLAINED[:30] not in talk.inner_text()
    assert "You found it yourself" not in beside.inner_text()
    page.locator("#coach-say:enabled").wait_for()
    say(page, "coach", "The Earth turns, and the stick stands still.", "say")
    beside.get_by_text("You found it yourself").wait_for()


def test_a_server_failure_is_reported_and_closing_the_page_cancels_the_call(
    visit: OpenPage, server: LoopbackServer, url: str
) -> None:
    server.behaviour = always(ServerReply(status=401))
    page = visit("?tab=chat", url=url)
    talk = page.locator("#chat-talk")
    say(page, "chat", "Why does the shadow move over a sundial?", "ask")
    talk.get_by_text("This could not be answered").wait_for()
    talk.get_by_text("rejected the key (401); check the key (`marag doctor` names its variable).").wait_for()
    page.locator("#chat-ask:enabled").wait_for()
    server.behaviour = hanging(quoting(), share=1.0)
    asked = len(server.bodies)
    say(page, "chat", "Why does the shadow move at noon?", "ask")
    until(lambda: len(server.bodies) > asked)
    page.close()
    until(lambda: bool(server.left))

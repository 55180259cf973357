"""Run the demo in a thread of this process and share one browser among all tests of this folder.

Gradio takes seconds to import and Chromium one to start. The folder comes first in collection order, so that
pytest-xdist gives its tests to one worker. What they share goes with the folder: playwright keeps an event loop
running, under which no other test could start one.
"""

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in
from tests.story import QUESTION, QUESTION_ID, STORY

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PATIENCE = 20_000
"""Milliseconds to wait for what should appear at once, since other processes may be using the CPU."""
ENCODERS = ("ENCODER=hash-64", "SCOPE_THRESHOLD=-1")


@dataclass(frozen=True, kw_only=True)
class Demo:
    """A running demo and the model that it calls."""

    url: str
    model: ScriptedModel


@contextmanager
def served(folder: Path, model: ScriptedModel | None, *assignments: str) -> Iterator[str]:
    """Serve the demo on a free port from an event loop in a thread; without a model it calls a model server."""
    from uvicorn import Config, Server

    from meta_agent_rag.demo.app import mounted
    from meta_agent_rag.demo.workbench import open_workbench

    settings = settings_in(folder, *assignments)
    servers: list[Server] = []
    faults: list[BaseException] = []

    async def serve() -> None:
        encoder = AsyncEncoder(HashEncoder())
        async with open_workbench(settings, model=model, monitor_encoder=encoder) as workbench:
            config = Config(mounted(workbench), host="127.0.0.1", port=0, log_level="error", ws="none")
            servers.append(Server(config))
            await servers[0].serve()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as fault:  # noqa: BLE001  # re-raised where the test can see it
            faults.append(fault)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while not (faults or (servers and servers[0].started)):
        thread.join(0.02)
    if faults:
        raise faults[0]
    port = servers[0].servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        servers[0].should_exit = servers[0].force_exit = True
        thread.join(60)
    assert not thread.is_alive()
    assert not faults


@pytest.fixture(scope="package")
def browser() -> "Iterator[Browser]":
    """The system's Chromium; the tests are skipped if it is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: uv sync")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here: apt-get install chromium, which .ci/run does where it may")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def demo(browser: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo with the scripted story, shared by all tests; the first search returns one passage."""
    model = ScriptedModel(STORY)
    with served(tmp_path_factory.mktemp("demo"), model, "RETRIEVAL_TOP_K=1", *ENCODERS) as url:
        yield Demo(url=url, model=model)


@pytest.fixture
def model(demo: Demo) -> Iterator[ScriptedModel]:
    """The model, which a test may make misbehave; its script is restored afterwards."""
    demo.model.requests.clear()
    yield demo.model
    demo.model.script, demo.model.seconds = STORY, 0.0


OpenPage = Callable[..., "Page"]


@pytest.fixture(scope="package")
def context(browser: "Browser") -> "Iterator[BrowserContext]":
    """One context for all pages, so that Gradio's scripts load once; every page is a separate visitor."""
    opened = browser.new_context()
    opened.set_default_timeout(PATIENCE)
    yield opened
    opened.close()


@pytest.fixture
def visit(context: "BrowserContext", demo: Demo) -> Iterator[OpenPage]:
    """Open pages, by default on the scripted question; none may ask another server or log an error."""
    pages: list[Page] = []
    asked: list[str] = []
    complaints: list[str] = []

    def open_page(
        query: str = "", *, url: str = demo.url, width: int = 1440, height: int = 900, dark: bool = False
    ) -> "Page":
        page = context.new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda fault: complaints.append(str(fault)))
        page.goto(url + (query or f"?tab=loop&question={QUESTION_ID}"))
        page.locator("#marag-tabs").wait_for()
        if not query:
            page.wait_for_function(f"document.querySelector('#loop-text textarea')?.value === {QUESTION!r}")
        return page

    yield open_page
    for page in pages:
        page.close()
    hosts = {urlsplit(url).hostname for url in asked if urlsplit(url).scheme not in {"data", "blob"}}
    assert hosts == {"127.0.0.1"}
    assert not complaints

"""Take the screenshots of the README: the demo's tabs in a browser, scripted, in both themes and at both widths.

    python -m benchmarks.tools.screenshots            # writes docs/images/*.png

Needs Chromium and playwright (a development dependency). No model is called and nothing is fetched.
"""

import io
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from meta_agent_rag.llm.messages import Request

_IMAGES = Path(__file__).parents[2] / "docs" / "images"
_WIDE, _NARROW = (1440, 900), (390, 844)
_COLOURS = 128
_PATIENCE = 60_000
_MODELS = ("LLM_PROVIDER=deepseek", "DEEPSEEK_API_KEY=none", "RESPONSE_CACHE=false")
_ENCODERS = ("ENCODER=hash-64", "MONITOR_ENCODER=hash-64", "RETRIEVAL_TOP_K=2", "SCOPE_THRESHOLD=-1")

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True, kw_only=True)
class Shot:
    """A screenshot: the tab's address, the actions there, and the view.

    `top` is the element at the top; with `only` the screenshot contains just that element.
    """

    name: str
    query: str
    act: "Callable[[Page], None]"
    size: tuple[int, int] = _WIDE
    dark: bool = False
    top: str = "#marag-heading"
    only: str = ""


@app.command()
@reporting
def main(
    folder: Annotated[Path, typer.Option(help="Where to write the screenshots.")] = _IMAGES,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Take screenshots of the demo."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    model = ScriptedModel(SCRIPT)
    with TemporaryDirectory() as data, served(Path(data), model) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for shot in SHOTS:
            file = folder / f"{shot.name}.png"
            file.write_bytes(_smaller(_taken(browser, url, shot)))
            say(f"{file.name}: {file.stat().st_size / 1024:.0f} KB.")
        browser.close()


def _taken(browser: "Browser", url: str, shot: Shot) -> bytes:
    width, height = shot.size
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if shot.dark else "light",
        reduced_motion="no-preference",
    )
    page.set_default_timeout(_PATIENCE)
    page.goto(url + shot.query)
    shot.act(page)
    page.locator(shot.top).evaluate("element => element.scrollIntoView()")
    page.wait_for_timeout(800)
    picture: bytes = page.locator(shot.only).first.screenshot() if shot.only else page.screenshot()
    page.close()
    return picture


def _smaller(picture: bytes) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(picture)) as image:
        image.convert("RGB").quantize(_COLOURS).save(out, "PNG", optimize=True)
    return out.getvalue()


def chromium() -> str:
    """The path of the browser. Raises `InputError` if there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise InputError("Chromium is not installed; install it with: apt-get install chromium.")
    return found


@contextmanager
def served(data: Path, model: ScriptedModel) -> Iterator[str]:
    """The demo on a free port, with a scripted model."""
    import asyncio

    from uvicorn import Config, Server

    from meta_agent_rag.demo.app import mounted
    from meta_agent_rag.demo.workbench import open_workbench

    settings = Settings.load([*_MODELS, *_ENCODERS, f"MARAG_DATA_DIR={data}"])
    servers: list[Server] = []

    async def serve() -> None:
        async with open_workbench(settings, model=model) as workbench:
            servers.append(Server(Config(mounted(workbench), port=0, log_level="critical", ws="none")))
            await servers[0].serve()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    while not (servers and servers[0].started):
        thread.join(0.05)
        if not thread.is_alive():
            raise InputError("The demo did not start; run `marag demo --debug` to see why.")
    try:
        yield f"http://127.0.0.1:{servers[0].servers[0].sockets[0].getsockname()[1]}/"
    finally:
        servers[0].should_exit = servers[0].force_exit = True
        thread.join(20)


_DESIGNED = "It was designed by Berrick Haswade and opened in May 1868"
_BORN = "A slate carter's son, he was born at Oxlode"


def _born_is_known(request: "Request") -> bool:
    return _BORN in request.messages[-1].content


def _written(request: "Request") -> dict[str, Any]:
    """A first draft that guesses, or, in the chat and once both passages are present, one that knows."""
    if not _born_is_known(request) and "Stag Skerry" in request.messages[-1].content.rpartition("Question")[2]:
        quote = "The tower is 31 metres high"
        return _draft("31 metres", [quote], "Stag Skerry Light is 31 metres high [1].")
    answer = "Berrick Haswade designed the Candlewright Bridge [1], and he came from Kelmouth [1]."
    return _draft("Kelmouth", [_DESIGNED, "Berrick Haswade came from Kelmouth."], answer)


def _rewritten(request: "Request") -> dict[str, Any]:
    answer = "Berrick Haswade designed the Candlewright Bridge [1], and he was born at Oxlode [2]."
    return _draft("Oxlode", [_DESIGNED, _BORN], answer) if _born_is_known(request) else _written(request)


def _second_answer(request: "Request") -> dict[str, Any]:
    if "Stag Skerry" in request.messages[-1].content.rpartition("Question")[2]:
        return {"steps": ["The tower is 31 metres high."], "short_answer": "31 metres"}
    said = "Oxlode" if _born_is_known(request) else "Cravenhythe"
    return {"steps": ["Berrick Haswade designed it.", f"He was born at {said}."], "short_answer": said}


def _draft(short: str, quotes: list[str], answer: str) -> dict[str, Any]:
    return {"steps": ["Read the passages."], "quotes": quotes, "answer": answer, "short_answer": short}


def _coached(request: "Request") -> dict[str, Any]:
    if "turns" in request.messages[-1].content:
        return {"reply": "That's right. What follows for noon?", "acknowledges_right_answer": True}
    return {"reply": "Look at what stands still: is it the stick, or the Sun?", "acknowledges_right_answer": False}


def _looked_up(request: "Request") -> str:
    said = request.messages[-1].content
    return "Berrick Haswade" if "Who designed" in said else "Oxlode"


SCRIPT: dict[str, Any] = {
    "write": _written,
    "plan": {
        "chains": [{"of": "", "facts": ["Who designed the Candlewright Bridge?", "Where was # born?"]}],
        "operator": "last",
    },
    "look_up": _looked_up,
    "route": {
        "steps": ["Berrick Haswade designed it.", "He was born at Oxlode."],
        "rationale": "The second passage says where the designer was born.",
        "answer": "He was born at Oxlode.",
        "short_answer": "Oxlode",
    },
    "rewrite": _rewritten,
    "second_answer": _second_answer,
    "coach": _coached,
    "evaluate": {
        "rationale": "One passage names the designer, and none that was read says where he was born.",
        "deficit": "insufficient_knowledge",
        "error_type": "incomplete_reasoning",
        "suggestion": "Look for the birthplace of Berrick Haswade.",
        "suggested_queries": ["Berrick Haswade birthplace"],
    },
}


def _loop(page: "Page") -> None:
    page.wait_for_function("document.querySelector('#loop-text textarea')?.value.startsWith('In which village')")
    page.click("#loop-run")
    page.locator("#loop-answer-a .m-outcome").wait_for()


def _compared(page: "Page") -> None:
    page.wait_for_function("document.querySelector('#loop-text textarea')?.value.startsWith('In which village')")
    page.check("#loop-compare input")
    page.locator("#b-rounds input[type=number]").fill("0")
    page.locator("#b-rounds input[type=number]").press("Tab")
    page.click("#loop-run")
    for side in "ab":
        page.locator(f"#loop-answer-{side} .m-outcome").wait_for()


def _runs(page: "Page") -> None:
    page.locator("#runs-replay", has_text="What is the date of birth of Stephanie Von Hohenlohe").wait_for()


def _derived(page: "Page") -> None:
    page.locator("#runs-replay .m-monitoring").first.wait_for()


def _tour(page: "Page") -> None:
    page.locator("#tour-replay", has_text="First draft").wait_for()
    page.get_by_role("button", name="Next step", exact=True).first.click()
    page.locator("#tour-replay .m-monitoring").wait_for()


def _scores(page: "Page") -> None:
    _runs(page)
    page.get_by_role("tab", name="Scores").click()
    page.locator("#runs-scores", has_text="metarag").wait_for()


def _chat(page: "Page") -> None:
    page.locator("#chat-message textarea").fill("How tall is Stag Skerry Light?")
    page.click("#chat-ask")
    page.locator("#chat-sources", has_text="Confidence").wait_for()


def _coach(page: "Page") -> None:
    for words, after in (
        ("Why does the shadow move over a sundial?", "Look at what stands still"),
        ("The Earth turns, and the stick stands still.", "That's right."),
    ):
        page.locator("#coach-say:enabled").wait_for()
        page.locator("#coach-message textarea").fill(words)
        page.click("#coach-say")
        page.locator("#coach-talk", has_text=after).wait_for()


_DERIVED = "?run=recorded%3A+2WikiMultiHopQA&question=09447a1008c911ebbd92ac1f6bf848b6&method=metarag"
"""A question answered by a chain of four facts and an operator."""

_ASKED = "?tab=loop&question=sample-001"

SHOTS = (
    Shot(name="derivation-light", query=_DERIVED, act=_derived, only="#runs-replay .m-monitoring"),
    Shot(name="tour-light", query="", act=_tour),
    Shot(name="tour-phone-dark", query="", act=_tour, size=_NARROW, dark=True, top="#marag-tabs"),
    Shot(name="loop-light", query=_ASKED, act=_loop),
    Shot(name="loop-dark", query=_ASKED, act=_loop, dark=True),
    Shot(name="loop-compare-light", query=_ASKED, act=_compared),
    Shot(name="loop-phone-dark", query=_ASKED, act=_loop, size=_NARROW, dark=True, top="#loop-answer-a"),
    Shot(name="runs-light", query="?tab=runs", act=_runs),
    Shot(name="runs-scores-dark", query="?tab=runs", act=_scores, dark=True),
    Shot(name="runs-phone-light", query="?tab=runs", act=_runs, size=_NARROW, top="#marag-tabs"),
    Shot(name="chat-dark", query="?tab=chat", act=_chat, dark=True),
    Shot(name="chat-phone-light", query="?tab=chat", act=_chat, size=_NARROW, top="#marag-tabs"),
    Shot(name="coach-light", query="?tab=coach", act=_coach),
    Shot(name="coach-dark", query="?tab=coach", act=_coach, dark=True),
    Shot(name="coach-phone-dark", query="?tab=coach", act=_coach, size=_NARROW, dark=True, top="#marag-tabs"),
)
"""The screenshots, in the order of the tabs."""

if __name__ == "__main__":
    app()

"""Measure how soon the demo's page is usable, and how soon a stage appears after the model's reply."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.testing import ScriptedModel

from ..tools.screenshots import SCRIPT, chromium, served

if TYPE_CHECKING:
    from playwright.sync_api import Page

_PATIENCE = 60_000
_MODEL_SECONDS = 1.0
_CARDS = {"write": "Cognition: First draft", "evaluate": "Evaluating", "rewrite": "Cognition: Draft after repair 1"}
"""The stage whose reply makes a card appear, and how the card's label begins."""
_LOOK = """() => {
  window.seen = {};
  const look = () => {
    document.querySelectorAll('#loop-stages-a section').forEach(card => { window.seen[card.ariaLabel] ??= Date.now() });
    requestAnimationFrame(look);
  };
  look();
}"""


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("demo")(demo)


@reporting
def demo(
    runs: Annotated[int, typer.Option(min=1, help="Number of runs of the loop to observe.")] = 5, json_: Json = False
) -> None:
    """Milliseconds from a model's reply to its card in Chromium, and seconds until a new page is usable."""
    from playwright.sync_api import sync_playwright

    model = _Timed(script=SCRIPT, seconds=_MODEL_SECONDS)
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), model) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(_PATIENCE)
        started = time.monotonic()
        page.goto(f"{url}?tab=loop")
        page.locator("#loop-run:enabled").wait_for()
        usable = time.monotonic() - started
        page.evaluate(_LOOK)
        waits = [wait for _ in range(runs) for wait in _watched(page, model)]
        browser.close()
    result = {
        "runs": runs,
        "usable_s": usable,
        "stage_median_ms": statistics.median(waits),
        "stage_longest_ms": max(waits),
    }
    if json_:
        print_json(result)
        return
    say(f"page usable after {usable:.1f} s")
    say(
        f"{len(waits)} stages in {runs} runs, from the reply to the card: median "
        f"{result['stage_median_ms']:.0f} ms, longest {result['stage_longest_ms']:.0f} ms"
    )


def _watched(page: "Page", model: "_Timed") -> list[float]:
    """Run the loop once; the milliseconds until each card."""
    model.replied.clear()
    page.evaluate("window.seen = {}")
    page.click("#loop-run")
    page.locator("#loop-answer-a .m-outcome").wait_for()
    seen: dict[str, float] = page.evaluate("window.seen")
    waits = [
        moment - model.replied[stage]
        for stage, label in _CARDS.items()
        for shown, moment in seen.items()
        if shown.startswith(label)
    ]
    page.click("#loop-reset")
    page.locator(".m-intro").wait_for()
    return waits


class _Timed(ScriptedModel):
    """`replied` is when each stage was first answered, in milliseconds since 1970, as in JavaScript."""

    replied: dict[str, float] = Field(default_factory=dict)

    async def complete(self, request: Request) -> Reply:
        """See `ScriptedModel`."""
        reply = await super().complete(request)
        self.replied.setdefault(request.stage, 1000 * time.time())
        return reply

"""Check bounding boxes for clipping, overlap and poor legibility in every tab, at every width and in both themes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from meta_agent_rag.testing import ScriptedModel
from tests.coach import reply
from tests.loop import draft, second_answer
from tests.story import STORY

from .conftest import OpenPage

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

FAULTS = (Path(__file__).parent / "layout.js").read_text()
WIDTHS = {1440: 900, 768: 1024, 390: 844}
STEPS = {
    "Retrieval": "write",
    "First draft": "diagnose",
    "Not satisfied": "insufficient knowledge",
    "Planning": "write",
    "Draft after repair 1": "diagnose",
}
"""What each step shows, and the next one."""
SETTLED = 150
"""Milliseconds to wait for transitions and for scripts that react to the page width."""


def look(page: "Page", name: str) -> list[str]:
    """Return the current view's faults at every width in both themes."""
    found = []
    page.evaluate("document.dispatchEvent(new Event('wheel'))")  # whoever scrolls is not led to new cards
    page.add_style_tag(content="*, *::before, *::after { transition: none !important; }")  # measure final colours
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        for theme in ("light", "dark"):
            page.evaluate("dark => document.body.classList.toggle('dark', dark)", theme == "dark")
            page.wait_for_timeout(SETTLED)
            # what sticks to the top covers what was scrolled under it
            page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
            found += [f"{name}, {width} px, {theme}: {fault}" for fault in page.evaluate(FAULTS)]
    page.set_viewport_size({"width": 1440, "height": 900})
    return found


def loop(page: "Page") -> None:
    """Press Next step until the answer appears."""
    for card, waiting in STEPS.items():
        page.click("#loop-step")
        page.locator("#loop-stages", has_text=card).wait_for()
        # a click before is not a step, and the last pause may still be shown
        page.locator("#loop-status", has_text=f"Paused; the next step is “{waiting}”.").wait_for()
    page.click("#loop-step")
    page.locator("#loop-answer .m-outcome").wait_for()


def runs(page: "Page") -> None:
    page.locator("#runs-answers label", has_text="Where was the father of Lope").click()
    page.locator("#runs-replay", has_text="Where was the father of Lope").wait_for()


def plots(page: "Page") -> None:
    page.get_by_role("tab", name="Plots").click()
    page.locator("#runs-plots img").first.wait_for()


def chat(page: "Page") -> None:
    page.locator("#chat-message textarea").fill("How tall is Stag Skerry Light?")
    page.click("#chat-ask")
    page.locator("#chat-ask:enabled").wait_for()
    page.locator("#chat-sources", has_text="Confidence").wait_for()


def coach(page: "Page") -> None:
    page.locator("#coach-message textarea").fill("Why does the shadow move over a sundial?")
    page.click("#coach-say")
    page.locator("#coach-talk").get_by_text("What stands still, stick or Sun?").wait_for()
    page.locator("#coach-say:enabled").wait_for()


def tour(page: "Page") -> None:
    page.locator("#tour-replay", has_text="First draft").wait_for()
    page.get_by_role("button", name="All steps", exact=True).first.click()
    page.locator("#tour-replay", has_text="Gold answer").wait_for()


TALL = draft("31 metres", quotes=["The tower is 31 metres high"], answer="Stag Skerry Light is 31 metres high [1].")

ACTS: "dict[str, list[Callable[[Page], None]]]" = {
    "Loop": [lambda page: None, loop],
    "Tour": [tour],
    "Runs": [runs, plots],
    "Chat": [lambda page: None, chat],
    "Coach": [coach],
}
"""Actions in each tab; the layout is checked after each."""


def test_nothing_is_clipped_overlapping_or_hard_to_read(visit: OpenPage, model: ScriptedModel) -> None:
    page, found = visit(), []
    for tab, acts in ACTS.items():
        page.get_by_role("tab", name=tab, exact=True).click()
        model.script = {**STORY, "coach": reply("What stands still, stick or Sun?")}
        if tab == "Chat":
            model.script.update(write=TALL, rewrite=TALL, second_answer=second_answer("31 metres"))
        for state, act in enumerate(acts):
            act(page)
            found += look(page, f"{tab}-{state}")
    assert not found, "\n".join(found)

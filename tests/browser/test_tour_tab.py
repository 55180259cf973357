"""The tab Tour as a first-time visitor sees it, in Chromium."""

import pytest

from meta_agent_rag.testing import ScriptedModel

from .conftest import OpenPage

pytestmark = pytest.mark.slow

_LAST_CARD_IN_VIEW = """() => {
    const box = [...document.querySelectorAll('#tour-replay .m-card')].at(-1).getBoundingClientRect();
    return box.top >= 0 && box.top < innerHeight && (box.bottom <= innerHeight || box.top < 120);
}"""


def test_the_gain_comes_first_and_three_steps_show_what_the_loop_does_on_a_phone(
    visit: OpenPage, model: ScriptedModel
) -> None:
    page = visit("?", width=390, dark=True)
    replay = page.locator("#tour-replay")
    assert page.get_by_text("F1 gained over one pass").is_visible()
    replay.get_by_text("step 2 of 9").wait_for()
    step = page.get_by_role("button", name="Next step", exact=True).first
    for shown in ("Derived from single facts", "Reasoning error", "Planning"):
        step.click()
        replay.get_by_text(shown).first.wait_for()
        page.wait_for_function(_LAST_CARD_IN_VIEW)
    assert step.bounding_box()["y"] >= 0, "the buttons remain in view"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("ArrowRight")
    replay.get_by_text("step 6 of 9").wait_for()
    page.keyboard.press("ArrowLeft")
    replay.get_by_text("step 5 of 9").wait_for()
    page.get_by_role("tab", name="Loop").click()
    page.locator("#loop-text textarea").focus()
    page.keyboard.press("ArrowRight")
    assert not model.requests, "in a text field an arrow key only moves the cursor"

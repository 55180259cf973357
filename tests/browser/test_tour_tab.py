"""The tab Tour as a first-time visitor sees it, in Chromium."""

import pytest

from meta_agent_rag.testing import ScriptedModel
from tests.story import QUESTION, QUESTION_ID

from .conftest import OpenPage

pytestmark = pytest.mark.slow

_LAST_CARD_IN_VIEW = """() => {
    const box = [...document.querySelectorAll('#tour-replay .m-card')].at(-1).getBoundingClientRect();
    return box.top >= 0 && box.top < innerHeight && (box.bottom <= innerHeight || box.top < 120);
}"""


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (768, True), (390, True)])
def test_three_steps_show_what_the_loop_does(visit: OpenPage, model: ScriptedModel, width: int, dark: bool) -> None:
    page = visit("?", width=width, dark=dark)
    replay = page.locator("#tour-replay")
    replay.get_by_text("First draft").wait_for()
    step = page.get_by_role("button", name="Next step", exact=True).first
    for shown in ("Derived from single facts", "Reasoning error", "Planning"):
        step.click()
        replay.get_by_text(shown).first.wait_for()
        page.wait_for_function(_LAST_CARD_IN_VIEW)
    assert step.bounding_box()["y"] >= 0, "the buttons remain in view"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    overlapping = """() => {
        const found = [...document.querySelectorAll('#tour-replay section section')];
        const cards = found.map(card => card.getBoundingClientRect());
        return cards.some((card, place) => place && card.top < cards[place - 1].bottom - 1);
    }"""
    assert not page.evaluate(overlapping)
    assert model.requests == []


def test_terms_are_explained_and_arrow_keys_step(visit: OpenPage, model: ScriptedModel) -> None:
    page = visit("?tab=Tour")
    replay, primer = page.locator("#tour-replay"), page.locator("#tour-primer")
    primer.locator("summary").click()
    assert primer.get_by_text("F1 gained over one pass").is_visible()
    for term in ("Derivation", "Vote", "Deficit"):
        assert primer.get_by_text(term, exact=True).is_visible()
    replay.get_by_text("step 2 of 9").wait_for()
    page.keyboard.press("ArrowRight")
    replay.get_by_text("step 3 of 9").wait_for()
    page.keyboard.press("ArrowLeft")
    replay.get_by_text("step 2 of 9").wait_for()
    page.goto(page.url.partition("?")[0] + f"?question={QUESTION_ID}")
    page.wait_for_function(f"document.querySelector('#loop-text textarea')?.value === {QUESTION!r}")
    page.locator("#loop-status").click()
    page.keyboard.press("ArrowRight")
    page.locator("#loop-status", has_text="Paused; the next step is “write”.").wait_for()
    text = page.locator("#loop-text textarea")
    text.focus()
    page.keyboard.press("ArrowRight")
    assert not model.requests, "in a text field an arrow key only moves the cursor"


def test_a_slider_goes_back_through_the_rounds(visit: OpenPage) -> None:
    page = visit("?tab=tour")
    replay = page.locator("#tour-replay")
    replay.get_by_text("First draft").wait_for()
    slider = replay.get_by_label("Rounds shown")
    assert slider.count() == 0, "only one round so far"
    page.get_by_role("button", name="All steps", exact=True).first.click()
    repair = replay.get_by_role("heading", name="Cognition Draft after repair 1")
    repair.wait_for()
    slider.fill("0")
    assert not repair.is_visible()
    assert replay.get_by_role("heading", name="First draft").is_visible()
    assert "the first draft" in replay.locator(".m-rounds").inner_text()
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert repair.is_visible()
    assert "step 9 of 9" in replay.inner_text(), "on the slider an arrow key only moves the slider"

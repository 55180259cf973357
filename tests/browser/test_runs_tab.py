"""The tab Runs as a visitor sees it, in Chromium."""

from typing import TYPE_CHECKING

import pytest

from meta_agent_rag.testing import ScriptedModel

from .conftest import OpenPage

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.slow


def replay(page: "Page") -> "Locator":
    return page.locator("#runs-replay")


def test_a_missing_run_is_reported_and_a_recorded_one_filtered_and_replayed(
    visit: OpenPage, model: ScriptedModel
) -> None:
    page = visit("?run=../../etc")
    page.locator("#runs-about", has_text="There is no run '../../etc'").wait_for()
    assert "nothing to replay" in replay(page).inner_text()
    page.get_by_label("Run", exact=True).click()
    page.get_by_role("option", name="recorded: 2WikiMultiHopQA", exact=True).click()
    replay(page).get_by_text("What is the date of birth of Stephanie Von Hohenlohe").first.wait_for()
    assert page.locator("#runs-answers label").count() == 24
    for option, shown in (("broken", "No answer matches"), ("fixed", "12 answers.")):
        page.get_by_label("Repair", exact=True).click()
        page.get_by_role("option", name=option, exact=True).click()
        page.locator("#runs-count", has_text=shown).wait_for()
    page.locator("#runs-answers label", has_text="Where was the father of Lope").click()
    replay(page).get_by_text("Where was the father of Lope").wait_for()
    first, back, on, every = (
        page.get_by_role("button", name=name, exact=True) for name in ("First step", "Back", "Next step", "All steps")
    )
    replay(page).get_by_text("step 9 of 9").wait_for()
    assert [button.is_enabled() for button in (first, back, on, every)] == [True, True, False, False]
    back.click()
    replay(page).get_by_text("step 8 of 9").wait_for()
    first.click()
    replay(page).get_by_text("step 1 of 9").wait_for()
    assert [button.is_enabled() for button in (first, back, on, every)] == [False, False, True, True]
    assert replay(page).locator("section section").count() == 1
    on.click()
    replay(page).get_by_text("First draft").wait_for()
    every.click()
    replay(page).get_by_text("Gold answer: Nájera.").wait_for()
    assert model.requests == []


def test_a_link_opens_an_answer_and_plots_fit_a_phone_screen(visit: OpenPage) -> None:
    page = visit(
        "?run=recorded%3A+HotpotQA&question=5abbf9b355429931dba145fe&method=standard_rag", width=390, dark=True
    )
    replay(page).get_by_text("Method standard_rag").wait_for()
    assert replay(page).locator("h3[title='5abbf9b355429931dba145fe']").count() == 1
    assert page.locator("#runs-answers input:checked").count() == 1
    assert page.get_by_label("Method", exact=True).input_value() == "standard_rag"
    page.get_by_role("tab", name="Plots").click()
    page.locator("#runs-plots").get_by_text("quality").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.wait_for_function("!location.search.includes('question')")
    assert "run=recorded" in page.url, "the address still names the run"

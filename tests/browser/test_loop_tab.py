"""The tab Loop as a visitor sees it, in Chromium."""

from typing import TYPE_CHECKING

import pytest

from meta_agent_rag.errors import UnreachableError
from meta_agent_rag.testing import ScriptedModel
from tests.story import DESIGNED, QUERY, RIGHT, STORY, WRONG

from .conftest import PATIENCE, OpenPage

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.slow


def stages(page: "Page") -> "Locator":
    return page.locator("#loop-stages")


def answer(page: "Page") -> str:
    """The text of the final answer's card, once it appears."""
    return str(page.locator("#loop-answer .m-outcome").inner_text())


def wait_for_status(page: "Page", words: str) -> None:
    page.locator("#loop-status", has_text=words).wait_for()


def test_a_wrong_draft_is_repaired_node_by_node(visit: OpenPage, model: ScriptedModel) -> None:
    page = visit()
    assert "asks whether it is right" in stages(page).inner_text()
    for waiting in ("write", "diagnose", "insufficient knowledge"):
        page.click("#loop-step")
        wait_for_status(page, f"Paused; the next step is “{waiting}”.")
        assert page.locator("#loop-graph .m-active span").first.text_content() == waiting
    assert [request.stage for request in model.requests] == ["write", "second_answer", "evaluate"]
    page.click("#loop-run")
    said = answer(page)
    assert f"First draft\n{WRONG}\nEM 0 · F1 0" in said
    assert f"Returned answer\n{RIGHT}\nEM 100 · F1 100" in said
    assert "Repaired: the first draft was wrong, the answer is correct." in said
    assert "The monitor accepts the draft" in said
    cards = stages(page).locator("section").evaluate_all("cards => cards.map(card => card.ariaLabel)")
    assert cards == [
        "Retrieval: 1 initial passage",
        "Cognition: First draft",
        "Monitoring: Not satisfied: the draft needs review",
        "Evaluating: Insufficient knowledge",
        "Planning: Repair: insufficient knowledge",
        "Remediation: 1 new passage",
        "Cognition: Draft after repair 1",
        "Monitoring: Satisfied",
    ]
    assert stages(page).locator("mark").first.inner_text() == DESIGNED
    assert "is not in any passage" in stages(page).inner_text()
    assert stages(page).locator(".m-queries").inner_text() == QUERY
    assert stages(page).locator("ins").inner_text() == f"was born at {RIGHT} [2]."
    assert "5 calls" in page.locator("#loop-spent").inner_text()
    page.locator("#loop-step:enabled").click()
    page.locator("#loop-step:enabled").wait_for()
    assert "Repaired" in answer(page), "a step after the end keeps the answer"
    assert len(model.requests) == 5
    page.click("#loop-reset")
    wait_for_status(page, "Ready.")
    assert stages(page).locator(".m-intro").is_visible()


def test_a_stopped_or_failed_run_can_continue(visit: OpenPage, model: ScriptedModel) -> None:
    page = visit()
    model.seconds = 60.0
    page.click("#loop-run")
    wait_for_status(page, "Cognition: writing a draft")
    page.click("#loop-stop")
    page.locator("#loop-status", has_text="Stopped in “write”").wait_for(timeout=PATIENCE / 2)
    assert not page.locator(".m-outcome").count()
    model.seconds = 0.0
    model.script = {"write": UnreachableError("The model server does not answer; start it, or name another.")}
    page.click("#loop-run")
    wait_for_status(page, "The model server does not answer; start it, or name another.")
    model.script = STORY
    page.click("#loop-run")
    assert "Repaired" in answer(page)
    assert "failed calls" in page.locator("#loop-spent").inner_text()
    page.click("#loop-what-if button")
    repairs = page.locator("#loop-repairs input[type=number]")
    while repairs.input_value() != "0":  # what an accordion holds is given its values after it has opened
        repairs.fill("0")
        repairs.press("Tab")
        page.wait_for_timeout(300)
    page.click("#loop-run")
    page.locator("#loop-answer", has_text="Wrong before and after.").wait_for()


def test_two_visitors_do_not_see_each_other_and_the_answer_fits_a_phone(visit: OpenPage, model: ScriptedModel) -> None:
    first, second = visit(), visit(width=390, height=844, dark=True)
    model.seconds = 0.2
    first.click("#loop-run")
    second.click("#loop-step")
    wait_for_status(second, "Paused; the next step is “write”.")
    assert "Repaired" in answer(first)
    wait_for_status(second, "Paused; the next step is “write”.")
    assert not second.locator(".m-outcome").count()
    second.click("#loop-run")
    answer(second)
    assert second.evaluate("document.documentElement.scrollWidth") == 390
    second.wait_for_function("document.querySelector('#loop-answer .m-card').getBoundingClientRect().top < innerHeight")
    assert second.locator("body").evaluate("body => body.classList.contains('dark')")


def test_the_address_keeps_the_place_and_a_question_can_be_changed(visit: OpenPage, model: ScriptedModel) -> None:
    page = visit("?question=nobody")
    wait_for_status(page, "Unknown question 'nobody'")
    page.get_by_text("Ho et al., 2020; Apache-2.0").wait_for()
    page.locator("#loop-chosen input").click()
    page.get_by_role("option", name="Who was born earlier, Silas Hardy or Lee Mantle?").click()
    page.wait_for_url("**/?tab=loop&question=0f44750808e411ebbda4ac1f6bf848b6")
    page.get_by_role("tab", name="Chat").click()
    page.wait_for_url("**/?tab=chat")
    page.go_back()
    page.wait_for_function("document.querySelector('#loop-text textarea')?.value.startsWith('Who was born earlier')")
    page.locator("#loop-text textarea").fill("  ")
    page.click("#loop-run")
    wait_for_status(page, "The question is empty; write one.")
    page.locator("#loop-text textarea").fill("Where was <b>Berrick</b> Haswade born?")
    page.click("#loop-run")
    assert "Gold answer" not in answer(page)

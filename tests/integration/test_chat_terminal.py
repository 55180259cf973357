"""`marag chat` as a user sees it, at a real pseudo-terminal and in a pipe, with a scripted model server."""

from pathlib import Path

import pytest

from meta_agent_rag.testing.server import loopback_server
from tests.terminal import CTRL_C, CTRL_D, Known, at_terminal, quoting

PENNANT = (
    "Ivo Merrigold designed it in 1926 for quarrymen who until then had waded across the Little Tolley twice a day."
)
TOLLEY = "Despite its name it never meets its larger namesake but drains westward into Lake Ombrel after 41 kilometres."
KNOWN = (
    Known(
        asked="Who designed the Pennant Bridge",
        quote=PENNANT,
        answer="Ivo Merrigold designed the Pennant Bridge in 1926",
        short="Ivo Merrigold",
    ),
    Known(
        asked="Little Tolley",
        quote=TOLLEY,
        answer="The Little Tolley drains into Lake Ombrel",
        short="Lake Ombrel",
        seconds=8.0,
    ),
)


def environment(base_url: str) -> dict[str, str]:
    """A loopback model without a key, and an encoder that needs no model."""
    return {
        "LLM_BASE_URL": base_url,
        "FLASH_MODEL": "scripted",
        "ENCODER": "hash-64",
        "MONITOR_ENCODER": "hash-64",
        "LLM_MAX_RETRIES": "0",
    }


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_conversation_at_a_terminal(tmp_path: Path) -> None:
    with loopback_server(quoting(KNOWN)) as server:
        with at_terminal(["chat", "--session", "evening"], environment(server.base_url)) as screen:
            screen.until_prompt(60)
            assert "session evening, no questions yet" in screen.text
            assert "/help lists the commands" in screen.text
            screen.say(
                "Who designed the Pennant Bridge?",
                "Ivo Merrigold designed",
                "Sources: Pennant Bridge",
                "confidence ",
                "1 round, ",
            )
            assert "Retrieving" in screen.text or "Writing" in screen.text or "Checking" in screen.text
            screen.say("Who won the regatta at Fenwarrow?", "The documents do not answer this", "not answered")
            screen.say("Thanks a lot!", "You are welcome")
            screen.press(b"Into which lake does the Little Tolley drain?\r")
            screen.until("Writing")
            screen.press(CTRL_C)
            screen.until("Stopped; this question is not remembered.")
            screen.until_prompt(5)
            screen.press(b"half a line" + CTRL_C)
            screen.until_prompt(5)
            history = screen.say("/history", "1. Who designed the Pennant Bridge?", "2. Who won the regatta")
            assert "Tolley drain" not in history
            screen.press(b"/quit\r")
            assert screen.until_end() == 0
            assert "Continue with: marag chat --session evening" in screen.text

        with at_terminal(["chat", "--session", "evening"], environment(server.base_url)) as screen:
            screen.until_prompt(60)
            assert "session evening, 2 questions so far" in screen.text
            screen.press(CTRL_D)
            assert screen.until_end() == 0
    asked = (tmp_path / "data" / "chat_history").read_text()
    assert "+Thanks a lot!" in asked


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_dumb_terminals_get_no_colour_or_cursor_control() -> None:
    plain = {**environment("http://127.0.0.1:9/v1"), "TERM": "dumb", "NO_COLOR": "1"}
    with at_terminal(["chat"], plain) as screen:
        screen.until("/help lists the commands. >", 50)
        screen.press(b"half a line" + CTRL_C)
        screen.until("^C >")
        screen.press(b"Thanks!\r")
        screen.until("You are welcome. >")
        screen.press(CTRL_D)
        assert screen.until_end() == 0
        assert b"\x1b" not in screen.raw

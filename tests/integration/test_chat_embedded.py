"""Twenty turns of `marag chat` on a fresh machine: sample corpus, embedded model, real pseudo-terminal."""

import re
from pathlib import Path

import pytest

from tests.terminal import CTRL_C, CTRL_D, Terminal, at_terminal

pytestmark = pytest.mark.slow

pytest.importorskip("xllamacpp")

PATIENCE = 240.0
"""Seconds per answer, since other processes may be using the CPU."""


BRIEF = {
    "answerer": """
  - {"quotes": ["Anna Roth built the mill."], "answer": "Anna Roth [1].", "short_answer": "Anna Roth", "confidence": 1}
  - {"quotes": [], "answer": "NOT FOUND", "short_answer": "NOT FOUND", "confidence": 1}
""",
    "second_answer": """
  - {"steps": [], "short_answer": "Anna Roth"}
""",
}
"""Examples for a very small model to imitate: replies are a third as long as with the package's prompts."""


def ask(screen: Terminal, question: str) -> None:
    """Ask the documents; a very small model may fail, but a reply and its confidence are shown."""
    shown = screen.say(question, seconds=PATIENCE)
    assert re.search(r"(confidence (high|medium|low) \(\d\.\d\d\)|not answered), \d+ rounds?, \d+\.\d s", shown), shown


@pytest.mark.timeout(900)
def test_twenty_turns_with_the_embedded_model(tmp_path: Path) -> None:
    # short prompts and no repairs, since the test is about the session
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    for name, examples in BRIEF.items():
        text = f"instruction: Answer from the passage in few words.\nexamples: |{examples}"
        (prompts / f"{name}.yaml").write_text(text)
    few_rounds = {
        "MAX_METACOGNITIVE_ROUNDS": "0",
        "RETRIEVAL_TOP_K": "1",
        "ENCODER": "all-MiniLM-L6-v2",
        "PROMPTS_DIR": str(prompts),
    }
    with at_terminal(["chat"], few_rounds) as screen:
        screen.until_prompt(PATIENCE)
        assert "Corpus sample, session default-sample, no questions yet." in screen.text
        assert "SmolLM2" in screen.text
        screen.say("Hello!", "Hello. What would you like to know")  # 1
        screen.say("What can you do?", "I answer questions from this corpus")
        screen.say("/help", "/history", "/save FILE")
        screen.say("/topics", "- ", "more")
        ask(screen, "Who designed the Pennant Bridge?")  # 5: the first question
        screen.say("/sources")
        screen.say("/trace", "Round 0")
        screen.say("Thanks!", "You are welcome")
        ask(screen, "When did he design it?")  # 9: a follow-up
        screen.say("What was my first question?", "Who designed the Pennant Bridge?")
        ask(screen, "Who built Stag Skerry Light?")  # 11: another topic
        screen.say("Write me a poem about the sea.", "I only answer questions about the documents")
        screen.say("What have we discussed?", "1. Who designed the Pennant Bridge?", "3. Who built Stag Skerry Light?")
        screen.press(b"How long is the Little Tolley?\r")  # 14: stopped midway
        screen.until("Writing", PATIENCE)
        screen.press(CTRL_C)
        screen.until("Stopped; this question is not remembered.", 20)
        screen.until_prompt(20)
        screen.say("/history", "1. Who designed the Pennant Bridge?", "3. Who built Stag Skerry Light?")
        assert "Little Tolley?" not in screen.text
        screen.say("/cost", "calls, ", "free (runs on this machine)")
        screen.press(b"/quit\r")
        assert screen.until_end() == 0
        assert "Continue with: marag chat --session default-sample" in screen.text
    with at_terminal(["chat", "--session", "default-sample"], few_rounds) as screen:
        screen.until_prompt(PATIENCE)
        assert "3 questions so far" in screen.text
        screen.say("/history", "3. Who built Stag Skerry Light?")  # 18
        screen.say("What was my last question?", "Who built Stag Skerry Light?")  # 19
        screen.say("/reset --yes", "Forgotten: 3 questions")  # 20
        screen.press(CTRL_D)
        assert screen.until_end() == 0

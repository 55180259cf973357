"""A program at a real pseudo-terminal, and a model server that quotes its passages, for tests of the shell."""

import json
import os
import re
import select
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_agent_rag.testing.scripted import universal_reply
from meta_agent_rag.testing.server import Behaviour, ServerReply
from tests.forked import MARAG, Forked, forked

CTRL_C, CTRL_D = b"\x03", b"\x04"
_AT_PROMPT = b"\x1b[?2004h"  # prompt_toolkit asks for bracketed paste when it begins to read a line
_ESCAPES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[@-Z\\-_]")
_PASSAGE = re.compile(r'<passage n="(\d+)"[^>]*>(.*?)</passage>', re.DOTALL)


@dataclass
class Terminal:
    """A child process at a pseudo-terminal of 100 columns."""

    process: Forked
    master: int
    raw: bytes = b""
    mark: int = 0

    @property
    def text(self) -> str:
        """The text since the last key press, without escape sequences and with collapsed whitespace."""
        return " ".join(_ESCAPES.sub(b"", self.raw[self.mark :]).decode("utf-8", "replace").split())

    def press(self, keys: bytes) -> None:
        """Send keys and discard earlier output."""
        self.mark = len(self.raw)
        os.write(self.master, keys)

    def say(self, line: str, *expected: str, seconds: float = 30.0) -> str:
        """Type a line, wait for the next prompt and return the text, which must contain the expected parts."""
        self.press(f"{line}\r".encode())
        self.until_prompt(seconds)
        for part in expected:
            assert part in self.text, (part, self.text)
        return self.text

    def until_prompt(self, seconds: float = 30.0) -> None:
        """Wait for a prompt."""
        self._until(lambda: _AT_PROMPT in self.raw[self.mark :], "a prompt", seconds)

    def until(self, text: str, seconds: float = 30.0) -> None:
        """Wait until a text appears after the last key press."""
        self._until(lambda: text in self.text, repr(text), seconds)

    def until_end(self, seconds: float = 30.0) -> int:
        """Wait until the process ends and return its exit code."""
        self._until(lambda: not self.process.running, "the end", seconds)
        while self._read(0.2):
            pass
        return self.process.ended()

    def _until(self, holds: Any, what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"waited {seconds} s for {what}: {self.text[-2000:]}"
            if not self._read(0.1) and not self.process.running:
                assert holds(), f"ended before {what}: {self.text[-2000:]}"

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], seconds)
        try:
            new = os.read(self.master, 65536) if ready else b""
        except OSError:  # the other end is closed
            return False
        self.raw += new
        return bool(new)


@contextmanager
def at_terminal(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Run `marag WORDS` as the session leader of a pseudo-terminal until the block ends."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (40, 100))
    env = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **environment}
    process = forked(MARAG, words, env, Path.cwd(), terminal=os.ttyname(slave))
    try:
        yield Terminal(process, master)
    finally:
        process.killed()
        os.close(slave)
        os.close(master)


@dataclass(frozen=True, kw_only=True)
class Known:
    """A reply of the model server to questions that contain `asked`; it quotes `quote` if a passage contains it."""

    asked: str
    quote: str
    answer: str
    short: str
    seconds: float = 0.0


def quoting(known: tuple[Known, ...]) -> Behaviour:
    """A model that quotes its passages, or replies NOT FOUND if they lack the answer."""

    def behaviour(body: dict[str, Any]) -> ServerReply:
        prompt = "\n".join(str(message["content"]) for message in body["messages"])
        if "Last message:" in prompt:
            message = prompt.rpartition("<message>")[2].partition("</message>")[0]
            return ServerReply(text=json.dumps({"intent": "question", "standalone": message}))
        question = prompt.partition("\nQuestion: ")[2].partition("\n\n")[0]
        fact = next((fact for fact in known if fact.asked in question), None)
        holding = {fact.quote in text: number for number, text in _PASSAGE.findall(prompt)} if fact else {}
        if "\nClaims:\n" in prompt:
            return ServerReply(text=json.dumps(_verdicts(prompt, fact.quote if fact is not None else "")))
        if fact is None or True not in holding:
            nothing = {"quotes": [], "answer": "NOT FOUND", "deficit": "none"}
            return ServerReply(text=json.dumps(universal_reply("NOT FOUND", **nothing)))
        said = {"quotes": [fact.quote], "answer": f"{fact.answer} [{holding[True]}].", "confidence": 0.95}
        return ServerReply(text=json.dumps(universal_reply(fact.short, **said)), seconds=fact.seconds)

    return behaviour


def _verdicts(prompt: str, quote: str) -> dict[str, Any]:
    """The critic's reply: the quote supports every claim but the first, which is a control."""
    numbers = re.findall(r"^(\d+)\. ", prompt.rpartition("Claims:\n")[2], re.MULTILINE)
    verdicts = [
        {"claim": int(number), "verdict": "not stated", "reason": "No passage says so."} for number in numbers[:1]
    ]
    verdicts += [{"claim": int(number), "verdict": "supported", "words": [quote]} for number in numbers[1:]]
    return {"sufficient": True, "claims": verdicts, "answers_question": True}

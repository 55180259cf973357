"""The public doors of the product and a model behind them; the only module here that knows import paths."""

import importlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import httpx
from typer.testing import CliRunner, Result

from meta_agent_rag import Answer, Passage, Settings, answer
from meta_agent_rag.testing import ScriptedModel, universal_reply
from meta_agent_rag.testing.server import LoopbackServer, ServerReply
from tests import files

ROOT = Path(__file__).parents[2]
COURSE = ROOT / "docs" / "examples" / "course"
SAMPLE_RECORD = ROOT / "benchmarks" / "recorded" / "sample.jsonl.gz"
KEY = "sk-acceptance-0123456789"
pdf, word, workbook, slides, rows = files.pdf, files.word, files.workbook, files.slides, files.rows

_PASSAGE = re.compile(r'<passage n="(\d+)"[^>]*>(.*?)</passage>', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What the model says to questions that contain `asked`, if a passage of the prompt contains `quote`.

    `said` is the answer's wording, with `[n]` for the number of the passage; `found` answers without looking.
    """

    asked: str
    quote: str
    said: str
    short: str
    confidence: float = 0.95
    looks: bool = True


@dataclass
class Model:
    """The model behind the loopback server: it knows `facts`, and says NOT FOUND to everything else.

    `coach` are its replies as a coach, one after another; `status` is an HTTP error instead of every reply, `seconds`
    the time per reply; `prompts` are the texts of all calls.
    """

    facts: Sequence[Fact] = ()
    coach: list[Mapping[str, Any]] = field(default_factory=list)
    rewrites: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    seconds: float = 0.0
    bodies: list[dict[str, Any]] = field(default_factory=list)

    @property
    def prompts(self) -> list[str]:
        return ["\n".join(str(message["content"]) for message in body["messages"]) for body in self.bodies]

    def reply(self, body: dict[str, Any]) -> ServerReply:
        """The reply to one call."""
        self.bodies.append(body)
        if self.status != 200:
            return ServerReply(status=self.status)
        return ServerReply(text=self._text(self.prompts[-1], bare="response_format" not in body), seconds=self.seconds)

    def _text(self, prompt: str, *, bare: bool) -> str:
        if "acknowledges_right_answer" in prompt:
            return json.dumps(self.coach.pop(0) if len(self.coach) > 1 else self.coach[0])
        if "Last message:" in prompt:
            message = prompt.rpartition("<message>")[2].partition("</message>")[0]
            return json.dumps({"intent": "question", "standalone": self.rewrites.get(message, message)})
        question = prompt.partition("\nQuestion: ")[2].partition("\n\n")[0]
        fact = next((fact for fact in self.facts if fact.asked in question), None)
        holding = [number for number, text in _PASSAGE.findall(prompt) if fact is not None and fact.quote in text]
        if "\nClaims:\n" in prompt:
            return json.dumps(_verdicts(prompt, fact.quote if fact is not None and holding else ""))
        if fact is None or (fact.looks and not holding):
            return "unknown" if bare else json.dumps(_NOTHING)
        if bare:
            return fact.short
        said = fact.said.replace("[n]", f"[{holding[0] if holding else 1}]")
        parts = {"quotes": [fact.quote], "answer": said, "confidence": fact.confidence}
        return json.dumps(universal_reply(fact.short, **parts))


_NOTHING = universal_reply("NOT FOUND", quotes=[], answer="NOT FOUND", deficit="none")


def _verdicts(prompt: str, quote: str) -> dict[str, Any]:
    """The critic's reply: a claim after the first is supported if the quoted sentence has its names and figures."""
    claims = re.findall(r"^(\d+)\. (.*?)(?: \(passage [\d, ]+\))?$", prompt.rpartition("Claims:\n")[2], re.MULTILINE)
    held = set(re.findall(r"\w+", quote))
    supported = {number for number, text in claims[1:] if set(re.findall(r"\b(?:[A-Z]\w+|\d+)", text)) <= held}
    verdicts = [
        {"claim": int(number), "words": [quote], "verdict": "supported"}
        if number in supported
        else {"claim": int(number), "verdict": "not stated", "reason": "No passage says so."}
        for number, _ in claims
    ]
    return {"sufficient": True, "claims": verdicts, "answers_question": True}


def environment(server: LoopbackServer) -> dict[str, str]:
    """A DeepSeek on the loopback server, and encoders that need no model."""
    return {
        "LLM_PROVIDER": "deepseek",
        "LLM_BASE_URL": server.base_url,
        "DEEPSEEK_API_KEY": KEY,
        "LLM_MAX_RETRIES": "0",
        "RESPONSE_CACHE": "false",
        "ENCODER": "hash-64",
        "MONITOR_ENCODER": "hash-64",
    }


def marag(*words: str, input: str | None = None, **env: str) -> Result:
    """Run `marag WORDS` in this process; settings come from the environment that the fixtures prepared."""
    (script,) = entry_points(group="console_scripts", name="marag")
    app = importlib.import_module(script.module).app
    return _ran(CliRunner().invoke(app, [*words], input=input, env=env))


def bench(module: str, *words: str, **env: str) -> Result:
    """Run `python -m benchmarks.MODULE WORDS` in this process."""
    app = importlib.import_module(f"benchmarks.{module}").app
    return _ran(CliRunner().invoke(app, [*words], env=env))


def _ran(result: Result) -> Result:
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def printed(result: Result) -> Any:
    """The JSON object that a successful command printed."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def talk(*lines: str, words: Sequence[str] = (), **env: str) -> str:
    """What `marag chat` prints for these lines of input; commands and answers alike."""
    result = marag("chat", *words, input="\n".join([*lines, "/quit", ""]), **env)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


async def loop(script: Mapping[str, Any], *evidence: Passage, question: str, assignments: Sequence[str] = ()) -> Answer:
    """Answer a question over passages with a model that replies by stage; the paper's monitor, the model as critic."""
    model = ScriptedModel(script)
    fixed = ["LLM_PROVIDER=deepseek", f"DEEPSEEK_API_KEY={KEY}", "RESPONSE_CACHE=false", "MONITOR_ENCODER=hash-64"]
    settings = Settings.load([*fixed, "MONITOR_POLICY=paper", *assignments])
    return await answer(question, evidence=evidence, settings=settings, model=model)


def a_run(folder: Path) -> Path:
    """The one run folder below a folder of results."""
    (found,) = (path for path in folder.iterdir() if path.is_dir())
    return found


def jsonl(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@dataclass(frozen=True, kw_only=True)
class Service:
    """A running `marag serve` with its data folder and log; every client has a key of its own."""

    url: str
    data: Path
    log: Path
    env: Mapping[str, str]

    def key(self, *scopes: str, name: str = "tests", words: Sequence[str] = ()) -> dict[str, str]:
        """A new key, as `marag keys create --json` prints it."""
        given = [word for scope in scopes or ("ask",) for word in ("--scope", scope)]
        created: dict[str, str] = printed(marag("keys", "create", name, *given, *words, "--json", **self.env))
        return created

    def client(self, *scopes: str, key: str = "") -> httpx.Client:
        """A client with a new key of these scopes, or with this key."""
        headers = {"Authorization": f"Bearer {key or self.key(*scopes)['key']}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)

    def ask(self, question: str, **fields: Any) -> httpx.Response:
        """One question with a new key."""
        with self.client() as client:
            return client.post("/v1/ask", json={"question": question, **fields})


@contextmanager
def started(words: Sequence[str], ready: str, log: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Run `marag WORDS` at a free port until the block ends; yields its address once the path `ready` responds."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "meta_agent_rag.cli.main", *words, "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **env}, cwd=log.parent)
    try:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            assert process.poll() is None, log.read_text()
            with suppress(OSError), urlopen(f"{url}{ready}", timeout=5):  # cheaper than a client of httpx
                break
            time.sleep(0.1)
        else:
            raise AssertionError(log.read_text())
        yield url
    finally:
        process.terminate()
        process.wait(20)


def free_port() -> int:
    """A port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])

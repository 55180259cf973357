"""The real embedded model: a child process that answers and is always cleaned up."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import httpx2
import openai  # noqa: F401  # its import takes longer than the time limits below
import pytest
from pydantic import BaseModel, Field

from meta_agent_rag.errors import ContextWindowError, UnknownModelError
from meta_agent_rag.llm.embedded import EmbeddedConnection
from meta_agent_rag.llm.ledger import total
from meta_agent_rag.llm.messages import Message, Request
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.settings import Settings

pytest.importorskip("xllamacpp")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks for processes in /proc"),
    pytest.mark.timeout(60),
]

EVIDENCE = "Passage: Faust is a tragic play in two parts by Johann Wolfgang von Goethe, first printed in 1808. " * 4
PREFIX = Message(role="system", content=f"You answer questions about a passage.\n\n{EVIDENCE}")


class Answer(BaseModel):
    """Few tokens: other tests may be using the processor."""

    year: Annotated[int, Field(ge=1000, le=2999)]
    certain: bool


def settings_for(**values: object) -> Settings:
    return Settings.load((), llm_provider="embedded", response_cache=False, embedded_context_tokens=2_048, **values)


def servers_of(parent: int) -> list[int]:
    """Running embedded server processes started by a process."""
    children = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _status(pid)[1] == str(parent)]
    return [pid for pid in children if _alive(pid) and b"meta_agent_rag.llm.embedded" in _command(pid)]


def _alive(pid: int) -> bool:
    return _status(pid)[0] not in ("gone", "Z")


def _status(pid: int) -> tuple[str, str]:
    """State letter and parent, which follow the command's closing bracket."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return "gone", ""
    return state, parent


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


async def test_it_answers_in_json_reuses_its_prefix_and_leaves_no_process() -> None:
    async with open_language_model(settings_for()) as model:
        assert servers_of(os.getpid()) == []  # started by the first call
        session = model.session()
        questions = ("When was Faust printed?", "In which year was this play first printed?")
        answers = [
            await session.ainvoke("write", [PREFIX, Message(role="user", content=question)], Answer)
            for question in questions
        ]
        assert len(servers_of(os.getpid())) == 1
        assert (await model.connections.to(model.choice.tiers["flash"])).identity.startswith("embedded:")
    assert servers_of(os.getpid()) == []
    assert all(isinstance(answer, Answer) for answer in answers)
    first, second = session.rows
    assert [row.error for row in session.rows] == [None, None]
    assert (first.provider, first.model, first.finish_reason) == ("embedded", "SmolLM2-135M-Instruct", "stop")
    sums = [total([row]) for row in session.rows]
    assert sums[0].prompt_tokens > 80
    assert sums[0].completion_tokens > 0
    assert sums[1].cache_hit_tokens > 0.8 * sums[0].prompt_tokens
    assert second.cache_miss_tokens == sums[1].prompt_tokens - sums[1].cache_hit_tokens < 50
    assert total(session.rows).cost_usd is None  # an unknown price is not 0


HI_MESSAGE = Message(role="user", content="Hi")
HI = Request(stage="write", model="m", messages=(HI_MESSAGE,), max_tokens=4, temperature=0.0)
STORY = Message(role="user", content="Tell a very long story about a doctor.")
LONG = replace(HI, messages=(STORY,), max_tokens=1_000)


async def test_a_dead_server_is_restarted_once_and_answers_only_with_its_key() -> None:
    settings = settings_for()
    connection = EmbeddedConnection.of(choose_provider(settings).tiers["flash"], settings)
    await connection.complete(HI, {})
    (died,) = servers_of(os.getpid())
    os.kill(died, signal.SIGKILL)
    assert await asyncio.to_thread(within, 10, lambda: _status(died)[0] == "gone")
    await asyncio.gather(*(connection.complete(HI, {}) for _ in range(3)))
    (serving,) = servers_of(os.getpid())
    assert serving != died
    address = (await connection.chat()).model_dump()["openai_api_base"]
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    async with httpx2.AsyncClient() as stranger:
        refused = await stranger.post(f"{address}/chat/completions", json=body)
    assert refused.status_code == 401
    assert (await connection.complete(HI, {})).usage is not None
    await connection.aclose()
    assert servers_of(os.getpid()) == []


async def test_a_prompt_longer_than_the_context_window_is_reported() -> None:
    async with open_language_model(settings_for()) as model:
        long = [Message(role="user", content="word " * 4_000)]
        with pytest.raises(ContextWindowError, match="lower EVIDENCE_TOKENS"):
            await model.session().areply("write", long)


async def test_an_invalid_model_file_is_reported(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.gguf"
    wrong.write_text("certainly not a model")
    async with open_language_model(settings_for(embedded_model_path=wrong)) as model:
        session = model.session()
        with pytest.raises(
            UnknownModelError, match=r"'wrong\.gguf' did not start; check that the file is a GGUF model"
        ):
            await session.areply("write", [Message(role="user", content="Hi")])
        assert servers_of(os.getpid()) == []
    assert [row.error for row in session.rows] == ["UnknownModelError"]


SCRIPT = """
import asyncio
from pydantic import BaseModel
from meta_agent_rag.llm.messages import Message
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.settings import Settings

class Yes(BaseModel):
    yes: bool

async def main():
    settings = Settings.load(["LLM_PROVIDER=embedded", "RESPONSE_CACHE=false", "EMBEDDED_CONTEXT_TOKENS=2048"])
    async with open_language_model(settings) as model:
        ask = [Message(role="user", content="Tell a very long story about a doctor.")]
        await model.session().ainvoke("look_up", ask, Yes)
        task = asyncio.create_task(model.session().areply("rewrite", ask))
        await asyncio.sleep(0.2)
        print("busy", flush=True)
        await task
        await asyncio.sleep(60)

asyncio.run(main())
"""


def test_the_server_does_not_outlive_a_killed_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        try:
            assert parent.stdout.readline() == b"busy\n"
            children = servers_of(parent.pid)
            assert len(children) == 1
            assert all(map(_alive, children))
        finally:
            os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10)
        assert parent.returncode == -signal.SIGKILL
        assert within(5, lambda: not any(map(_alive, children)))

"""DeepSeek on a loopback server; shared by the tests of the language model."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.messages import Message
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import Behaviour, LoopbackServer, ServerReply

SECRET = "sk-0123456789-very-secret"
ASK = [Message(role="system", content="Be brief."), Message(role="user", content="Who wrote Faust?")]
OFF_PEAK = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
GOOD = ServerReply(text='{"answer": "Goethe"}')
Serve = Callable[[Behaviour], LoopbackServer]


class Answer(BaseModel):
    """What `GOOD` says."""

    answer: str


def in_turn(*replies: ServerReply) -> Behaviour:
    """Send the replies in order, then repeat the last."""
    left = list(replies)
    return lambda body: left.pop(0) if len(left) > 1 else left[0]


def settings_for(server: LoopbackServer | str, **values: object) -> Settings:
    url = server if isinstance(server, str) else server.base_url
    chosen: dict[str, Any] = {
        "llm_provider": "deepseek",
        "deepseek_api_key": SECRET,
        "llm_base_url": url,
        "response_cache": False,
        **values,
    }
    return Settings.load(**chosen)


@asynccontextmanager
async def opened(server: LoopbackServer | str, **values: object) -> AsyncIterator[LanguageModel]:
    """A client of DeepSeek on the loopback server, off-peak."""
    async with open_language_model(settings_for(server, **values)) as model:
        yield replace(model, clock=lambda: OFF_PEAK)

"""The tools of `marag mcp`, called with the official MCP client."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult

from meta_agent_rag.service.mcp import create_server
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in
from tests.service import SCRIPT

QUESTION = "Which river is crossed by the bridge that Ansel Torvaine designed?"


@asynccontextmanager
async def client(folder: Path) -> AsyncIterator[tuple[Client, ScriptedModel]]:
    model = ScriptedModel(SCRIPT)
    settings = settings_in(folder, "ENCODER=hash-64", "MONITOR_ENCODER=hash-64")
    async with Client(create_server(settings, ["sample"], model=model)) as connected:
        yield connected, model


def words(result: CallToolResult) -> str:
    (content,) = result.content
    return str(getattr(content, "text", ""))


async def test_the_tools_are_described_answer_and_search(tmp_path: Path) -> None:
    async with client(tmp_path) as (connected, model):
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert set(tools["ask"].input_schema["properties"]) == {"question", "corpus"}
        assert set(tools["search"].input_schema["properties"]) == {"query", "corpus", "k"}
        found: Any = (
            await connected.call_tool("search", {"query": "Who was born in 1564?", "k": 3})
        ).structured_content
        scores = [passage["score"] for passage in found["passages"]]
        assert (found["corpus"], len(scores), scores) == ("sample", 3, sorted(scores, reverse=True))
        assert not model.requests
        told: Any = (await connected.call_tool("ask", {"question": QUESTION})).structured_content
        assert (told["refused"], told["corpus"]) == ("invented_quotes", "sample")
        assert model.asked("write")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("ask", {"question": "  "}, "send 1 to 1000"),
        ("search", {"query": "a", "corpus": "nowhere"}, "'nowhere'"),
        ("search", {"query": "a", "k": 1000}, "less than or equal to 50"),
    ],
)
async def test_errors_are_reported_without_a_traceback(
    tool: str, arguments: dict[str, Any], said: str, tmp_path: Path
) -> None:
    async with client(tmp_path) as (connected, _):
        result = await connected.call_tool(tool, arguments)
    assert result.is_error
    assert said in words(result)
    assert "Traceback" not in words(result)


@pytest.mark.slow
async def test_stdio_carries_only_the_protocol(tmp_path: Path) -> None:
    """Runs the command in a child process; the client fails on any other line on standard output."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "meta_agent_rag.cli.main", "mcp", "--set", "ENCODER=hash-64"],
        env={**os.environ, "MARAG_DATA_DIR": str(tmp_path)},
    )
    with (tmp_path / "errors").open("w") as errors:
        async with Client(stdio_client(server, errlog=errors)) as connected:
            result = await connected.call_tool("search", {"query": "Who was born in 1564?", "k": 2})
    assert len((result.structured_content or {})["passages"]) == 2
    assert "Traceback" not in (tmp_path / "errors").read_text()

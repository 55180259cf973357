"""The tools of `marag mcp`, called with the official MCP client."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult
from typer.testing import CliRunner
from uvicorn import Config, Server

from meta_agent_rag.cli.main import app
from meta_agent_rag.errors import UnreachableError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.service.access import open_keys
from meta_agent_rag.service.database import open_database
from meta_agent_rag.service.mcp import KeyHolders, create_server, open_library
from meta_agent_rag.testing import ScriptedModel
from tests.loop import BIRTH_SENTENCE, QUESTION, settings_in
from tests.service import SCRIPT, film_retrievers

ASKED = {"question": QUESTION, "corpus": "films"}


@asynccontextmanager
async def client(
    folder: Path, *assignments: str, model: ScriptedModel | None = None
) -> AsyncIterator[tuple[Client, ScriptedModel]]:
    model = model or ScriptedModel(SCRIPT)
    settings = settings_in(folder, "ENCODER=hash-64", *assignments)
    async with (
        open_library(
            settings, model=model, retrievers=film_retrievers(), monitor_encoder=AsyncEncoder(HashEncoder())
        ) as library,
        Client(create_server(library)) as connected,
    ):
        yield connected, model


def words(result: CallToolResult) -> str:
    (content,) = result.content
    return str(getattr(content, "text", ""))


async def test_the_tools_are_described(tmp_path: Path) -> None:
    async with client(tmp_path) as (connected, model):
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
    assert set(tools) == {"ask", "search"}
    for tool in tools.values():
        assert tool.description
        assert tool.output_schema is not None
    assert tools["ask"].input_schema["required"] == ["question"]
    assert set(tools["search"].input_schema["properties"]) == {"query", "corpus", "k"}
    assert not model.requests, "listing the tools opens nothing and calls no model"


async def test_an_answer_comes_with_its_citations(tmp_path: Path) -> None:
    async with client(tmp_path) as (connected, _):
        result = await connected.call_tool("ask", ASKED)
    assert not result.is_error
    answer: Mapping[str, Any] = result.structured_content or {}
    assert answer["answer"].startswith("Mira Holt was born in Oslo")
    assert (answer["short_answer"], answer["refused"], answer["rounds"]) == ("Oslo", None, 1)
    (citation,) = answer["citations"]
    assert (citation["doc_id"], citation["snippet"]) == ("birth", BIRTH_SENTENCE)
    assert answer["confidence_score"] > 0.5
    assert answer["cost_usd"] > 0


async def test_a_search_calls_no_model(tmp_path: Path) -> None:
    async with client(tmp_path) as (connected, model):
        result = await connected.call_tool("search", {"query": "Who was born in 1564?", "k": 3})
        assert not model.requests
    found: Mapping[str, Any] = result.structured_content or {}
    assert found["corpus"] == "sample"
    assert len(found["passages"]) == 3
    scores = [passage["scores"]["score"] for passage in found["passages"]]
    assert scores == sorted(scores, reverse=True)
    assert all(passage["passage_id"] and passage["snippet"] for passage in found["passages"])


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("ask", {"question": "  "}, "send 1 to 1000"),
        ("ask", {"question": "x" * 1001, "corpus": "films"}, "The question has 1001 characters"),
        ("search", {"query": "a", "corpus": "nowhere"}, "'nowhere' is not served; choose from: sample, films"),
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


async def test_the_http_server_requires_a_key(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    model = ScriptedModel({"write": UnreachableError("DeepSeek at http://10.0.0.5:8000/v1 does not respond.")})
    encoder = AsyncEncoder(HashEncoder())
    opened = open_library(settings, model=model, retrievers=film_retrievers(), monitor_encoder=encoder)
    async with open_database(settings) as database, opened as library:
        keys = open_keys(database, settings)
        token, _ = await keys.create("tests")
        ingest, _ = await keys.create("ingest", ("ingest",))
        restricted, _ = await keys.create("restricted", corpora=["sample"])
        served = KeyHolders(create_server(library).streamable_http_app(json_response=True, stateless_http=True), keys)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = Server(Config(served, log_level="critical", lifespan="on"))
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            try:
                async with (
                    httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
                    Client(streamable_http_client(url, http_client=http)) as connected,
                ):
                    result = await connected.call_tool("search", {"query": QUESTION, "corpus": "films"})
                    titles = [passage["title"] for passage in (result.structured_content or {})["passages"]]
                    assert titles == ["Film", "Birth"]
                    result = await connected.call_tool("ask", {"question": QUESTION, "corpus": "films"})
                    assert result.is_error
                    assert "The language model is not responding at the moment" in words(result)
                    assert "10.0.0.5" not in words(result)
                async with (
                    httpx2.AsyncClient(headers={"Authorization": f"Bearer {restricted}"}) as http,
                    Client(streamable_http_client(url, http_client=http)) as connected,
                ):
                    result = await connected.call_tool("search", {"query": QUESTION, "corpus": "films"})
                    assert result.is_error
                    assert "choose from: sample." in words(result)
                for wrong, status in (("nobody", 401), (ingest, 403)):
                    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {wrong}"}) as http:
                        refused = await http.post(url, json={})
                        assert refused.status_code == status
                        assert refused.json()["error"]["message"].endswith(".")
            finally:
                server.should_exit = True
                await serving


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


def test_an_address_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = CliRunner().invoke(app, ["mcp", "--http", "--port", str(taken.getsockname()[1])])
    assert result.exit_code == 2
    assert "choose another" in result.stderr
    assert "Serving" not in result.stderr

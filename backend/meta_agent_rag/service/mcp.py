"""The tools `ask` and `search` for clients that speak the Model Context Protocol, over stdio or HTTP.

Questions are answered from a corpus as by `marag ask --grounded`. Model, encoder and corpora are opened on
first use, so that a client that only lists the tools does not wait, and stay open until the end.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import InputError, MetaRagError, RequestError
from ..extras import require
from ..grounding.citations import Citation, Scores
from ..llm.opening import Given
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import Retriever
from ..retrieval.open_retriever import open_encoder, open_retriever
from ..settings import Settings
from .access import Client, Keys, open_keys
from .failures import refusal
from .schemas import QUESTION_CHARACTERS, CheckedReply, as_checked

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from ..agent.engine import Engine

_METHOD = "mcp"
_LOCAL = Client(id="", name="local", digest="", scopes=("ask",), created=datetime.min.replace(tzinfo=UTC))
"""A caller on this machine, who needs no key."""
Corpus = Annotated[str | None, Field(description="The corpus to look in; default: the first one served.")]


class ToolPassages(BaseModel):
    """The passages that were found, best first; `snippet` is the whole text of one."""

    corpus: str
    passages: list[Citation]


@dataclass(kw_only=True)
class ToolLibrary:
    """The tools' resources, opened on first use and closed with `stack`. Only `corpora` are served."""

    settings: Settings
    stack: AsyncExitStack
    corpora: tuple[str, ...]
    model: Given = None
    retrievers: dict[str, Retriever] = field(default_factory=dict)
    monitor_encoder: AsyncEncoder | None = None
    _encoder: AsyncEncoder | None = None
    _engine: "Engine | None" = None
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, question: str, corpus: str) -> CheckedReply:
        """Answer from a corpus. Raises `MetaRagError`."""
        from ..agent.context import Task
        from ..agent.engine import open_engine
        from ..agent.grounded import Checks, checked

        wanted, checks = _words("question", question), Checks.of(self.settings)
        retriever = await self._retriever(corpus)
        async with self._opening:
            if self._engine is None:
                opened = open_engine(self.settings, model=self.model, monitor_encoder=self.monitor_encoder)
                self._engine = await self.stack.enter_async_context(opened)
            engine = self._engine
        drafted = await engine.run(Task(question=wanted, retriever=retriever, grounded=True, method=_METHOD))
        result = await checked(engine, drafted, checks)
        cost = result.totals.cost_usd
        return CheckedReply(**as_checked(result), cost_usd=None if cost is None else float(cost), corpus=corpus)

    async def search(self, query: str, corpus: str, k: int) -> ToolPassages:
        """Find passages without calling a model. Raises `MetaRagError`."""
        found = (await (await self._retriever(corpus)).retrieve([_words("query", query)], k=k)).found
        passages = [
            Citation(
                doc_id=one.passage.doc_id,
                passage_id=one.passage.id,
                title=one.passage.title,
                section=one.passage.section,
                page=one.passage.start_page,
                last_page=one.passage.end_page,
                span=one.passage.span,
                snippet=one.passage.text,
                scores=Scores(score=one.score, dense=one.dense, lexical=one.lexical),
            )
            for one in found
        ]
        return ToolPassages(corpus=corpus, passages=passages)

    async def _retriever(self, corpus: str) -> Retriever:
        async with self._opening:
            if corpus not in self.retrievers:
                self._encoder = self._encoder or await asyncio.to_thread(open_encoder, self.settings)
                opened = open_retriever(self.settings, corpus, encoder=self._encoder)
                self.retrievers[corpus] = await self.stack.enter_async_context(opened)
            return self.retrievers[corpus]


@asynccontextmanager
async def open_library(
    settings: Settings,
    corpora: Sequence[str] = (SAMPLE,),
    *,
    model: Given = None,
    retrievers: Mapping[str, Retriever] | None = None,
    monitor_encoder: AsyncEncoder | None = None,
) -> AsyncIterator[ToolLibrary]:
    """A library as the settings describe it, closed at the end; components passed in are used instead."""
    async with AsyncExitStack() as stack:
        yield ToolLibrary(
            settings=settings,
            stack=stack,
            corpora=tuple(dict.fromkeys([*corpora, *(retrievers or {})])),
            model=model,
            retrievers=dict(retrievers or {}),
            monitor_encoder=monitor_encoder,
        )


def create_server(library: ToolLibrary) -> "MCPServer":
    """The server with its tools. Raises `MissingExtraError` if the extra is not installed."""
    require("mcp", "`marag mcp`")
    from importlib.metadata import version

    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server = MCPServer("meta-agent-rag", version=version("meta-agent-rag"), log_level="WARNING")

    @contextmanager
    def served(ctx: Context, corpus: str | None) -> Iterator[str]:
        """The corpus for the client whose key the HTTP request carried; errors become those of a tool."""
        state = getattr(ctx.request_context.request, "state", None)
        client: Client = getattr(state, "client", _LOCAL)
        try:
            yield client.corpus(corpus, library.corpora)
        except MetaRagError as error:
            # another machine's client is told no more than over HTTP: no addresses of servers
            raise ToolError(str(error if client is _LOCAL else refusal(error))) from None

    @server.tool()
    async def ask(question: str, ctx: Context, corpus: Corpus = None) -> CheckedReply:
        """Answer a question from a corpus of documents: checked and cited, or refused with what to try instead."""
        with served(ctx, corpus) as name:
            return await library.ask(question, name)

    @server.tool()
    async def search(
        query: str, ctx: Context, corpus: Corpus = None, k: Annotated[int, Field(ge=1, le=50)] = 5
    ) -> ToolPassages:
        """Find the k passages of a corpus most relevant to a query, with the location of each in its document."""
        with served(ctx, corpus) as name:
            return await library.search(query, name, k)

    return server


async def serve_stdio(settings: Settings, corpora: Sequence[str]) -> None:
    """Serve one client over standard input and output, until it closes them."""
    async with open_library(settings, corpora) as library:
        await create_server(library).run_stdio_async()


async def serve_http(
    settings: Settings, corpora: Sequence[str], *, host: str, port: int, on_listening: Callable[[], None]
) -> None:
    """Serve clients over HTTP at `/mcp` until SIGTERM or SIGINT; remote clients need a key.

    `on_listening` is called once the port is open.
    """
    from .database import open_database
    from .uvicorn_server import bound, run_server, server_config

    async with AsyncExitStack() as stack:
        server = create_server(await stack.enter_async_context(open_library(settings, corpora)))
        app: ASGIApp = server.streamable_http_app(host=host, json_response=True, stateless_http=True)
        if not _is_this_machine(host):
            database = await stack.enter_async_context(open_database(settings))
            app = KeyHolders(app, open_keys(database, settings))
        listener = stack.enter_context(bound(host, port))
        on_listening()
        await run_server(server_config(app), listener)


class KeyHolders:
    """An ASGI middleware that requires a key with the scope `ask`."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app, self.keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
            try:
                client = await self.keys.client(token.strip() if kind.lower() == "bearer" else "")
                client.require("ask")
                scope.setdefault("state", {})["client"] = client
            except RequestError as refused:
                headers = {"www-authenticate": "Bearer"} if refused.status == 401 else {}
                body = {"error": {"code": refused.code, "message": str(refused)}}
                await JSONResponse(body, status_code=refused.status, headers=headers)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _words(kind: str, text: str) -> str:
    trimmed = text.strip()
    if not trimmed or "\x00" in trimmed or len(trimmed) > QUESTION_CHARACTERS:
        raise InputError(f"The {kind} has {len(trimmed)} characters; send 1 to {QUESTION_CHARACTERS}, no null bytes.")
    return trimmed


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

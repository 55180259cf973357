"""A service with a scripted model, in-process or in a child process; shared by the tests of `service`."""

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import httpx
from fastapi import FastAPI

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import Retriever
from meta_agent_rag.service.access import Keys
from meta_agent_rag.service.app import create_app
from meta_agent_rag.service.database import open_database
from meta_agent_rag.service.resources import Service, open_service
from meta_agent_rag.service.uvicorn_server import serve_opened
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from tests.forked import Forked, forked_call
from tests.loop import BIRTH, BIRTH_SENTENCE, EVIDENCE, FILM, QUESTION, FakeRetriever, draft, settings_in

GOOD = draft("Oslo", quotes=[BIRTH_SENTENCE], answer="Mira Holt was born in Oslo [2].")
SCRIPT: Mapping[str, Any] = {"write": GOOD, "second_answer": {"steps": ["She was."], "short_answer": "Oslo"}}
ASKED = {"question": QUESTION, "corpus": "films"}
CONTEXT = {
    "question": QUESTION,
    "source_mode": "context-restricted",
    "context": [{"title": one.title, "text": one.text} for one in (FILM, BIRTH)],
}


@dataclass(frozen=True, kw_only=True)
class Running:
    """An open service, a client whose key may ask, and the model behind it."""

    app: FastAPI
    service: Service
    client: httpx.AsyncClient
    model: ScriptedModel
    token: str

    async def ask(self, **fields: Any) -> httpx.Response:
        return await self.client.post("/v1/ask", json={**ASKED, **fields})

    async def token_for(self, name: str, *scopes: str, **options: Any) -> str:
        return (await self.service.keys.create(name, scopes or ("ask",), **options))[0]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def film_retrievers() -> dict[str, Retriever]:
    """Retrievers for one corpus that contains the film and its director."""
    return {"films": FakeRetriever({QUESTION: EVIDENCE})}


@asynccontextmanager
async def running(
    folder: Path,
    *assignments: str,
    model: ScriptedModel | None = None,
    retrievers: Mapping[str, Retriever] | None = None,
    loopback: bool = False,
) -> AsyncIterator[Running]:
    """A service with a scripted model, or with `loopback` the server at LLM_BASE_URL."""
    model = model or ScriptedModel(SCRIPT)
    settings = settings_in(folder, *assignments)
    app = create_app(
        lambda: open_service(
            settings,
            (),
            model=None if loopback else model,
            monitor_encoder=AsyncEncoder(HashEncoder()),
            retrievers=film_retrievers() if retrievers is None else retrievers,
        )
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.router.lifespan_context(app))
        service: Service = app.state.service
        token, _ = await service.keys.create("tests", ("ask",))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        client = await stack.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url="http://service", headers=bearer(token))
        )
        yield Running(app=app, service=service, client=client, model=model, token=token)


def code_of(response: httpx.Response) -> str:
    """The error code of a response whose body is the error envelope and nothing else."""
    body = response.json()
    assert set(body) == {"error"}, body
    assert set(body["error"]) == {"code", "message", "type", "request_id"}
    assert body["error"]["request_id"] == response.headers["x-request-id"]
    return str(body["error"]["code"])


def events_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Server-sent events as (name, data)."""
    blocks = [dict(line.partition(": ")[::2] for line in block.splitlines()) for block in text.split("\n\n") if block]
    return [(block["event"], json.loads(block["data"])) for block in blocks if "event" in block]


def serve(port: int, workers: int, corpora: Sequence[str], log: str) -> None:
    """Serve in this process until it is stopped, over corpora or the film's.

    The model is a script that takes 20 ms per call, or the server at LLM_BASE_URL.
    """
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    serve_opened(partial(_opened, corpora), host="127.0.0.1", port=port, workers=workers)


def _opened(corpora: Sequence[str]) -> AbstractAsyncContextManager[Service]:
    settings = Settings.load()
    return open_service(
        settings,
        corpora,
        model=ScriptedModel(SCRIPT, seconds=0.02) if settings.llm_base_url is None else None,
        monitor_encoder=AsyncEncoder(HashEncoder()),
        retrievers=None if corpora else film_retrievers(),
    )


@dataclass(kw_only=True)
class ServiceProcess:
    """A service in another process, started and stopped by the test; `log` holds its output."""

    folder: Path
    port: int
    token: str
    workers: int = 1
    corpora: Sequence[str] = ()
    child: Forked | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    @property
    def log(self) -> Path:
        return self.folder / "service.log"

    def start(self) -> None:
        """Start the service and wait until it responds."""
        fixed = {"LLM_PROVIDER": "deepseek", "DEEPSEEK_API_KEY": "none", "RESPONSE_CACHE": "false"}
        env = {"SERVICE_RATE_PER_MINUTE": "100000", **fixed, **os.environ}
        given = (self.port, self.workers, tuple(self.corpora), str(self.log))
        self.child = forked_call(serve, *given, folder=self.folder, env=env, parent=True)
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            with suppress(OSError), urlopen(f"{self.url}/healthz"):  # cheaper than a client of httpx
                return
            time.sleep(0.025)
        raise AssertionError(f"the service did not start: {self.log.read_text()}")

    def stop(self, number: signal.Signals) -> int:
        """Send the service a signal, wait until it ends, and return its exit code."""
        assert self.child is not None
        self.child.send(number)
        return self.child.ended()


@asynccontextmanager
async def service_process(
    folder: Path, *, workers: int = 1, corpora: Sequence[str] = (), scopes: Sequence[str] = ("ask",)
) -> AsyncIterator[ServiceProcess]:
    """Run a service with a key, in the environment's data folder."""
    settings = Settings.load()
    async with open_database(settings) as database:
        token, _ = await Keys(engine=database).create("process", scopes)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = ServiceProcess(folder=folder, port=port, token=token, workers=workers, corpora=corpora)
    try:
        await asyncio.to_thread(process.start)
        yield process
    finally:
        if process.child is not None:
            process.child.killed()

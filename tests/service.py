"""A service on a script: what the tests of the package `service` share."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import Retriever
from meta_agent_rag.service.app import create_app
from meta_agent_rag.service.parts import Service, open_service
from meta_agent_rag.testing import ScriptedModel
from tests.loop import BIRTH, BIRTH_SENTENCE, EVIDENCE, FILM, QUESTION, FakeRetriever, draft, settings_in

GOOD = draft("Oslo", quotes=[BIRTH_SENTENCE], answer="Mira Holt was born in Oslo [2].")
SCRIPT: Mapping[str, Any] = {"write": GOOD, "reference": {"steps": ["She was."], "short_answer": "Oslo"}}
ASKED = {"question": QUESTION, "corpus": "films"}
CONTEXT = {
    "question": QUESTION,
    "source_mode": "context-restricted",
    "context": [{"title": one.title, "text": one.text} for one in (FILM, BIRTH)],
}


@dataclass(frozen=True, kw_only=True)
class Running:
    """An open service, a client with a key that may ask, and the model behind it."""

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


def finding() -> dict[str, Retriever]:
    """One corpus in which the film and its director are found."""
    return {"films": FakeRetriever({QUESTION: EVIDENCE})}


@asynccontextmanager
async def running(
    folder: Path,
    *assignments: str,
    model: ScriptedModel | None = None,
    retrievers: Mapping[str, Retriever] | None = None,
) -> AsyncIterator[Running]:
    model = model or ScriptedModel(SCRIPT)
    settings = settings_in(folder, *assignments)
    app = create_app(
        lambda: open_service(
            settings,
            (),
            transport=model,
            monitor_encoder=AsyncEncoder(HashEncoder()),
            retrievers=finding() if retrievers is None else retrievers,
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
        yield Running(service=service, client=client, model=model, token=token)


def code_of(response: httpx.Response) -> str:
    """The code of a refusal; its body is the envelope and nothing else."""
    body = response.json()
    assert set(body) == {"error"}, body
    assert set(body["error"]) == {"code", "message", "request_id"}
    assert body["error"]["request_id"] == response.headers["x-request-id"]
    return str(body["error"]["code"])


def events_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Server-sent events as (name, data)."""
    blocks = [dict(line.partition(": ")[::2] for line in block.splitlines()) for block in text.split("\n\n") if block]
    return [(block["event"], json.loads(block["data"])) for block in blocks if "event" in block]

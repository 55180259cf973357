"""The demo over HTTP reads files that were uploaded to it, and no others; foreign hosts are rejected."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from meta_agent_rag.demo import private_corpus
from meta_agent_rag.errors import CorpusError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in

SECRET = "The vault opens with the word rhubarb."


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    from contextlib import asynccontextmanager

    from fastapi import FastAPI

    from meta_agent_rag.demo.app import mounted
    from meta_agent_rag.demo.workbench import open_workbench

    @asynccontextmanager
    async def lifespan(outer: FastAPI) -> Any:
        encoder = AsyncEncoder(HashEncoder())
        settings = settings_in(tmp_path, "ENCODER=hash-64")
        async with open_workbench(settings, model=ScriptedModel(), monitor_encoder=encoder) as workbench:
            app = mounted(workbench)
            outer.mount("/", app)
            async with app.router.lifespan_context(app):
                yield

    with TestClient(FastAPI(lifespan=lifespan), base_url="http://127.0.0.1:7860") as opened:
        yield opened


def uploading(client: TestClient, file: str) -> str:
    """Everything that the page is told after its upload handler was called with a path."""
    given = [{"path": file, "orig_name": "a.md", "meta": {"_type": "gradio.FileData"}}]
    return told_by(client, "chat-upload", "upload", [given, None])


def told_by(client: TestClient, element: str, event: str, data: list[Any]) -> str:
    """Everything that the page is told after the handler of an event was called; `element` is an id or a type."""
    config = client.get("/config").json()
    names = {one["id"]: one["props"].get("elem_id") or one["type"] for one in config["components"]}
    handlers = {(names.get(id_), event): one for one in config["dependencies"] for id_, event in one["targets"]}
    handler = handlers[element, event]
    body = {"data": data, "fn_index": handler["id"], "session_hash": "visitor"}
    assert client.post("/gradio_api/queue/join", json=body).status_code == 200
    with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": "visitor"}) as events:
        told = [json.loads(line.removeprefix("data:")) for line in events.iter_lines() if line.startswith("data:")]
    return json.dumps(told)


def test_a_file_of_the_server_is_not_read(client: TestClient, tmp_path: Path) -> None:
    secret = tmp_path / "secret_plan.md"
    secret.write_text(SECRET, encoding="utf-8")
    told = uploading(client, str(secret))
    assert "process_completed" in told
    assert '"success": false' in told
    assert "a.md" not in told
    assert "secret_plan" not in told


def test_an_uploaded_file_is_read(client: TestClient) -> None:
    sent = client.post("/gradio_api/upload", files={"files": ("a.md", SECRET.encode())})
    told = uploading(client, sent.json()[0])
    assert '"success": true' in told
    assert "a.md" in told


def test_a_file_that_cannot_be_removed_is_reported(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def in_use(*_args: Any, **_options: Any) -> None:
        raise CorpusError("The corpus is in use; try again later.")

    for name in ("a.md", "b.md"):
        sent = client.post("/gradio_api/upload", files={"files": (name, f"{SECRET} {name}".encode())})
        uploading(client, sent.json()[0])
    monkeypatch.setattr(private_corpus, "ingest", in_use)
    told = told_by(client, "chat-discard", "input", ["a.md", None])
    assert "The corpus is in use; try again later." in told
    assert '["a.md", "a.md"]' in told, "it can be removed later"


def test_a_foreign_host_is_rejected(client: TestClient) -> None:
    assert client.get("/config", headers={"Host": "evil.example"}).status_code == 400
    assert client.get("/config", headers={"Host": "localhost:7860"}).status_code == 200

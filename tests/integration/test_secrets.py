"""Planted secrets, and a model server that echoes the key it is sent: none is output, logged or stored."""

import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from meta_agent_rag.testing.server import ServerReply, helpful, loopback_server
from tests.service import ASKED, CONTEXT, bearer, service_process

KEY = "sk-planted-model-0001"
PLANTED = {
    "DEEPSEEK_API_KEY": KEY,
    "OPENAI_API_KEY": "sk-planted-other-0002",
    "QDRANT_API_KEY": "planted-qdrant-0004",
    "ELASTICSEARCH_API_KEY": "planted-elastic-0005",
    "HF_TOKEN": "hf_planted_0006",
}
WRONG = "marag_planted-token-0007"
REFUSED = "Is the key refused?"


def repeating(body: dict[str, Any]) -> ServerReply:
    """Some servers quote a rejected key, and some proxies the whole request."""
    if REFUSED not in json.dumps(body):
        return helpful()(body)
    words = {"error": {"message": f"Incorrect API key provided: {KEY}", "headers": {"authorization": f"Bearer {KEY}"}}}
    return ServerReply(status=401, body=words, headers={"x-request-key": KEY})


@pytest.mark.slow
async def test_no_secret_is_output_logged_or_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def keep(reply: httpx.Response) -> httpx.Response:
        said.append(f"{reply.headers} {reply.text}")
        return reply

    with loopback_server(repeating) as server:
        given = {
            **PLANTED,
            "LLM_PROVIDER": "deepseek",
            "LLM_BASE_URL": server.base_url,
            "LLM_MAX_RETRIES": "0",
            "MARAG_DATA_DIR": str(tmp_path / "data"),
        }
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        each_anew = httpx.Limits(max_keepalive_connections=0)
        async with (
            service_process(tmp_path) as service,
            httpx.AsyncClient(base_url=service.url, limits=each_anew) as client,
        ):
            own = bearer(service.token)
            good = keep(await client.post("/v1/ask", json=CONTEXT, headers=own))
            assert good.status_code == 200
            refused = keep(await client.post("/v1/ask", json=CONTEXT | {"question": REFUSED}, headers=own))
            assert refused.status_code >= 500
            streamed = {"question": REFUSED, "source_mode": "context-restricted", "context": "Nothing is known of it."}
            keep(await client.post("/v1/ask/stream", json=streamed, headers=own))
            assert keep(await client.post("/v1/ask", json=ASKED, headers=bearer(WRONG))).status_code == 401
            assert keep(await client.post("/v1/ask", content=b"{", headers=own)).status_code == 422
            for address in (f"/v1/queries/{good.json()['query_id']}", "/metrics", "/readyz", "/openapi.json"):
                keep(await client.get(address, headers=own))
            service.stop(signal.SIGTERM)
            secrets = [*PLANTED.values(), WRONG, service.token]
            log = service.log.read_text()
    assert log.count('"') > 10, "the log exists"
    kept = files_below(tmp_path)
    assert any(name.endswith((".sqlite", ".db")) for name in kept), kept
    for secret in secrets:
        assert secret not in log
        assert not [text for text in said if secret in text]
        assert not [name for name, content in kept.items() if secret.encode() in content]


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

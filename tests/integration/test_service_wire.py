"""How a real server handles slow, malformed and key-guessing clients, over raw sockets."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from meta_agent_rag.service.uvicorn_server import LimitedProtocol, server_config
from tests.service import ASKED, Running, bearer, code_of, running


@asynccontextmanager
async def listening(service: Running) -> AsyncIterator[int]:
    """Run a server for the application; yields its port."""
    from uvicorn import Server

    class Impatient(LimitedProtocol):
        head_seconds = 0.4

    config = server_config(service.app)
    config.lifespan, config.http, config.port = "off", Impatient, 0
    server = Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:  # noqa: ASYNC110  # no event signals that it has started
            await asyncio.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving


async def exchange(port: int, *parts: bytes, pause: float = 0.0) -> tuple[str, float]:
    """Send these bytes; returns the server's output until it closes the connection, and the seconds taken."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.monotonic()
    answer = asyncio.create_task(_read(reader))
    for part in parts:
        writer.write(part)
        await asyncio.sleep(pause)
        if answer.done():
            break
    text = (await asyncio.wait_for(answer, 20)).decode("latin-1")
    writer.close()
    return text, time.monotonic() - began


async def _read(reader: asyncio.StreamReader) -> bytes:
    text = b""
    with suppress(ConnectionResetError):  # nothing reads what is sent after the end
        while part := await reader.read(4096):
            text += part
    return text


def head(service: Running, *lines: str, path: str = "/v1/ask", method: str = "POST") -> bytes:
    own = [f"{method} {path} HTTP/1.1", "Host: a", f"Authorization: Bearer {service.token}", "Connection: close"]
    return "\r\n".join([*own, *lines, "", ""]).encode("latin-1")


@pytest.mark.slow
async def test_slow_and_malformed_clients_are_rejected(tmp_path: Path) -> None:
    json = "Content-Type: application/json"
    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=0.8") as service, listening(service) as port:
        nothing, seconds = await exchange(port, b"")
        assert (nothing, seconds < 3) == ("", True), "a silent client is disconnected"
        dripped, seconds = await exchange(port, b"GET /healthz HTTP/1.1\r\n", *[b"A: b\r\n"] * 40, pause=0.1)
        assert (dripped, seconds < 3) == ("", True), "and so is one that sends its headers slowly"
        slow, seconds = await exchange(port, head(service, json, "Content-Length: 900"), *[b" "] * 40, pause=0.1)
        assert slow.startswith("HTTP/1.1 504"), slow
        assert 0.7 < seconds < 3, "the deadline applies to the body"
        large, _ = await exchange(port, head(service, json, "Content-Length: 99000000"))
        assert large.startswith("HTTP/1.1 413"), "rejected by its declared length"
        chunked = head(service, json, "Transfer-Encoding: chunked")
        counted, _ = await exchange(port, chunked, *[b"40000\r\n" + b" " * 0x40000 + b"\r\n"] * 3)
        assert counted.startswith("HTTP/1.1 413"), "or by the bytes received"
        for bad in (
            head(service, "X-Request-Id: a\rSet-Cookie: b"),
            head(service, "X-Evil: a\x00b"),
            head(service, " folded: a"),
            head(service, "Content-Length: 1", "Content-Length: 2"),
            head(service, path="/v1/ask HTTP/1.1\r\nX: y"),
        ):
            refused, _ = await exchange(port, bad)
            assert refused.startswith("HTTP/1.1 4"), refused
            assert "set-cookie" not in refused.lower()
        for path in ("//v1/queries/a", "/v1/../v1/ask", "/v1/%2e%2e/healthz", "/v1/queries/..%2f..%2fetc", "/v1/ask/"):
            lost, _ = await exchange(port, head(service, path=path, method="GET"))
            assert lost.startswith(("HTTP/1.1 404", "HTTP/1.1 422")), (path, lost)
            assert "location:" not in lost.lower()
        split, _ = await exchange(port, head(service, path="/%0d%0aSet-Cookie:%20a=b", method="GET"))
        assert split.startswith("HTTP/1.1 404")
        assert "set-cookie:" not in split.lower()
        multipart = "Content-Type: multipart/form-data; boundary=b"
        owner = head(service, multipart, "Content-Length: 999999999", path="/v1/documents").replace(
            service.token.encode(), (await service.token_for("up", "ingest")).encode()
        )
        upload, _ = await exchange(port, owner)
        assert upload.startswith("HTTP/1.1 409"), "an in-memory corpus takes no uploads, and the body is not awaited"
        fine, _ = await exchange(port, head(service, path="/healthz", method="GET"))
        assert fine.startswith("HTTP/1.1 200")


async def test_keys_cannot_be_guessed_fast(tmp_path: Path) -> None:
    wrong = [bearer(f"marag_{number:012x}_{'x' * 43}") for number in range(8)]
    async with running(tmp_path, "SERVICE_WRONG_KEYS_PER_MINUTE=5") as service:
        assert (await service.ask()).status_code == 200
        newcomer = bearer(await service.token_for("newcomer"))
        outcomes = [await service.client.post("/v1/ask", json=ASKED, headers=key) for key in wrong]
        assert [response.status_code for response in outcomes] == [401] * 5 + [429] * 3
        assert code_of(outcomes[-1]) == "too_many_wrong_keys"
        assert 1 <= int(outcomes[-1].headers["retry-after"]) <= 60
        assert (await service.client.get("/v1/corpora", headers=newcomer)).status_code == 429, "a correct guess too"
        assert (await service.ask()).status_code == 200, "a client that authenticated before is served"
        text = (await service.client.get("/metrics")).text
        assert "forbidden" in text, "its key is not an admin key"
        admin = await service.token_for("admin", "admin")
        await service.service.limits.limiter.storage.reset()
        metrics = (await service.client.get("/metrics", headers=bearer(admin))).text
        lines = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
        assert lines['marag_requests_total{endpoint="/v1/ask",status="200"}'] == "2.0"
        assert lines['marag_requests_total{endpoint="/v1/ask",status="401"}'] == "5.0"
        written = [float(count) for name, count in lines.items() if "model_calls_total" in name and '"write"' in name]
        assert sum(written) == 2
        assert lines["marag_requests_in_flight"] == "1.0"
        assert lines['marag_request_seconds_count{endpoint="/v1/ask"}'] == "10.0"
        assert "tests" not in metrics, "no client names"


async def test_wrong_keys_are_counted_by_network(tmp_path: Path) -> None:
    async with running(tmp_path, "SERVICE_WRONG_KEYS_PER_MINUTE=2") as service:

        async def outcome(address: str) -> int:
            transport = httpx.ASGITransport(service.app, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
                return (await client.get("/v1/corpora", headers=bearer("wrong"))).status_code

        assert [await outcome("10.0.0.1") for _ in range(3)] == [401, 401, 429]
        assert await outcome("10.0.0.2") == 401, "another address"
        assert [await outcome(f"2001:db8::{number:x}") for number in range(1, 4)] == [401, 401, 429], "one network"
        assert [await outcome("::ffff:10.0.0.2") for _ in range(2)] == [401, 429], "an IPv4 address in IPv6 form"

"""`marag serve` as a process: start, drain, workers, a full disk, and slow, malformed and too many clients."""

import asyncio
import json
import os
import re
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner
from uvicorn import Server

from meta_agent_rag.cli.main import app
from meta_agent_rag.service.uvicorn_server import LimitedProtocol, server_config
from meta_agent_rag.testing import universal_reply
from meta_agent_rag.testing.server import ServerReply, always
from tests.loopback import Serve
from tests.service import ASKED, GOOD, Running, ServiceProcess, bearer, running, service_process


def client_of(process: ServiceProcess) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=process.url, headers=bearer(process.token), timeout=90)


@pytest.mark.slow
async def test_a_started_service_answers_cancels_and_drains(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(always(ServerReply(text=json.dumps({**universal_reply("Oslo"), **GOOD}))))
    monkeypatch.setenv("LLM_BASE_URL", server.base_url)
    monkeypatch.setenv("SERVICE_DEADLINE_SECONDS", "30")
    monkeypatch.setenv("CLAIM_CHECK", "exact")
    good = server.behaviour
    async with service_process(tmp_path) as process, client_of(process) as client:
        reported = await client.post("/v1/ask", json=ASKED)
        assert (reported.status_code, reported.json()["short_answer"]) == (200, "Oslo"), reported.text
        assert "server" not in reported.headers
        server.behaviour = always(ServerReply(seconds=30))
        for address in ("/v1/ask", "/v1/ask/stream"):
            with pytest.raises(httpx.ReadTimeout):
                await client.post(address, json=ASKED, timeout=1.0)
        server.behaviour = lambda body: replace(good(body), seconds=0.5)
        under_way = asyncio.create_task(client.post("/v1/ask", json=ASKED))
        await asyncio.sleep(0.3)
        started = time.monotonic()
        code = await asyncio.to_thread(process.stop, signal.SIGTERM)
        assert time.monotonic() - started < 10
        assert (await under_way).status_code == 200, "the answer in progress is completed"
    said = process.log.read_text()
    assert code == 0, said
    assert json.loads(said.splitlines()[-1])["message"] == "Stopped."
    assert not [secret for secret in (ASKED["question"], process.token) if secret in said]
    kept = await asyncio.to_thread(CliRunner().invoke, app, ["audit", "tail", "--json"])
    rows = {row["error"]: row for row in json.loads(kept.stdout)}
    assert rows.keys() == {None, "client_went"}
    assert [(call["stage"], call["error"]) for call in rows["client_went"]["model_calls"]] == [("write", "cancelled")]


def test_startup_errors_are_reported_in_one_sentence(tmp_path: Path) -> None:
    servers = ["--set", "QDRANT_URL=http://127.0.0.1:1", "--set", "ELASTICSEARCH_URL=http://127.0.0.1:1"]
    for words, said in (
        (["--host", "no.such.host.invalid"], "listen"),
        (["--set", "DATABASE_URL=mysql://host/name"], "mysql"),
        (["--set", "DATABASE_URL=postgresql://me:hush@127.0.0.1:1/none"], "DATABASE_URL"),
        (["--set", "DATABASE_URL=postgresql://me:hush/none"], "DATABASE_URL"),
        (["--set", "REDIS_URL=unix://:hush@/none"], "REDIS_URL"),
        (["--set", "SERVICE_DEADLINE_SECONDS=0"], "SERVICE_DEADLINE_SECONDS"),
        (["--workers", "2"], "its own uploads"),
        (["--workers", "2", *servers], "REDIS_URL"),
    ):
        done = CliRunner().invoke(app, ["serve", "--port", "0", *words])
        assert (done.exit_code, said in done.output) == (2, True), done.output
        assert not [bad for bad in ("Traceback", "hush") if bad in done.output]


@pytest.mark.slow
async def test_workers_share_rate_limits_restart_and_drain(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("REDIS_URL", redis_url), ("SERVICE_RATE_PER_MINUTE", "8"), ("SERVICE_DEADLINE_SECONDS", "60")):
        monkeypatch.setenv(name, value)

    def worker_pids() -> list[int]:
        return [int(number) for number in re.findall(r"Worker (\d+) started", process.log.read_text())]

    async with service_process(tmp_path, workers=2) as process:

        async def statuses(count: int) -> list[int]:
            async with client_of(process) as client:
                told = await asyncio.gather(*(client.post("/v1/ask", json=ASKED) for _ in range(count)))
            return sorted(response.status_code for response in told)

        assert await statuses(6) == [200] * 6
        os.kill(worker_pids()[0], signal.SIGKILL)
        async with asyncio.timeout(30):
            while len(worker_pids()) < 3:  # noqa: ASYNC110  # no event signals it from another process
                await asyncio.sleep(0.05)
        assert await statuses(6) == [200] * 2 + [429] * 4, "across both workers and a restart of one"
        assert await asyncio.to_thread(process.stop, signal.SIGTERM) == 0
    rows = json.loads((await asyncio.to_thread(CliRunner().invoke, app, ["audit", "tail", "--json"])).stdout)
    assert len({row["query_id"] for row in rows}) == len(rows) == 12


@pytest.mark.slow
async def test_a_full_disk_is_not_ready_and_one_address_cannot_exhaust_the_descriptors(tmp_path: Path) -> None:
    elsewhere = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
    async with (
        service_process(tmp_path) as process,
        httpx.AsyncClient(
            base_url=process.url, headers=bearer(process.token), timeout=30, transport=elsewhere
        ) as client,
    ):
        limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
        full = await client.get("/readyz")
        assert (full.status_code, "disk" in full.json()["degraded"]) == (503, True), full.text
        assert (await client.post("/v1/ask", json=ASKED)).status_code == 503
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
        await asyncio.sleep(1.1)
        closing = {"Connection": "close"}
        assert (await client.get("/readyz", headers=closing)).status_code == 200
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (150, 150))
        with ExitStack() as opened:
            for _ in range(400):
                opened.enter_context(socket.create_connection(("127.0.0.1", process.port)))
            await asyncio.sleep(0.5)
            os.kill(process.pid, signal.SIGSTOP)  # what connects now is accepted at once, before any of it is closed
            for _ in range(25):
                opened.enter_context(socket.create_connection(("127.0.0.1", process.port)))
            asked = asyncio.create_task(client.post("/v1/ask", json=ASKED, headers=closing))
            await asyncio.sleep(0.2)
            os.kill(process.pid, signal.SIGCONT)
            assert (await asked).status_code == 200, "other addresses are served"
        await asyncio.sleep(0.5)
        own = await asyncio.to_thread(httpx.get, f"{process.url}/healthz")
        assert own.status_code == 200, "and this one too, once it has closed its connections"
    said = process.log.read_text()
    assert said.count("too many are open") == 1, said
    assert "Traceback" not in said


@asynccontextmanager
async def listening(service: Running) -> AsyncIterator[int]:
    """Run a server for the application; yields its port."""

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


async def exchange(port: int, *parts: bytes) -> str:
    """Send these bytes, slowly; returns the server's output until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = asyncio.create_task(_read(reader))
    for part in parts:
        writer.write(part)
        await asyncio.wait({answer}, timeout=0.1)
        if answer.done():
            break
    text = (await asyncio.wait_for(answer, 5)).decode("latin-1")
    writer.close()
    return text


async def _read(reader: asyncio.StreamReader) -> bytes:
    text = b""
    with suppress(ConnectionResetError):  # nothing reads what is sent after the end
        while part := await reader.read(4096):
            text += part
    return text


async def test_slow_and_malformed_clients_are_rejected(tmp_path: Path) -> None:
    json_ = "Content-Type: application/json"
    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=0.8") as service, listening(service) as port:

        def head(*lines: str, path: str = "/v1/ask", method: str = "POST") -> bytes:
            own = [f"{method} {path} HTTP/1.1", "Host: a", f"Authorization: Bearer {service.token}"]
            return "\r\n".join([*own, "Connection: close", *lines, "", ""]).encode("latin-1")

        assert await exchange(port) == "", "a silent client is disconnected"
        assert await exchange(port, b"GET /healthz HTTP/1.1\r\n", *[b"A: b\r\n"] * 40) == "", (
            "and one with slow headers"
        )
        slow = await exchange(port, head(json_, "Content-Length: 900"), *[b" "] * 40)
        assert slow.startswith("HTTP/1.1 504"), "the deadline applies to the body"
        chunked = head(json_, "Transfer-Encoding: chunked")
        large = await exchange(port, chunked, *[b"40000\r\n" + b" " * 0x40000 + b"\r\n"] * 3)
        assert large.startswith("HTTP/1.1 413")
        paths = ("//v1/queries/a", "/v1/../v1/ask", "/v1/queries/..%2f..%2fetc")
        for bad in (
            head("X-Request-Id: a\rSet-Cookie: b"),
            head("X-Evil: a\x00b"),
            head("Content-Length: 1", "Content-Length: 2"),
            head(path="/v1/ask HTTP/1.1\r\nX: y"),
            head(path="/%0d%0aSet-Cookie:%20a=b"),
            *(head(path=path, method="GET") for path in paths),
        ):
            refused = await exchange(port, bad)
            assert refused.startswith("HTTP/1.1 4"), refused
            assert not re.search("^(set-cookie|location):", refused, re.IGNORECASE | re.MULTILINE)
        assert (await exchange(port, head(path="/healthz", method="GET"))).startswith("HTTP/1.1 200")

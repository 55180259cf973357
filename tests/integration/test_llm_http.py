"""HTTP details, tested with raw loopback servers: proxies, redirects and ends of streams."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from meta_agent_rag.llm.endpoints.http import HttpClient, HttpError, _proxy
from pydantic import SecretStr

from meta_agent_rag.errors import ModelError, RefusedError, SettingsError
from tests.loopback import ASK, SECRET, opened

GIVEN = "given-in-a-header"
USAGE = {"prompt_tokens": 5, "completion_tokens": 1}
CHUNKS = (
    {"choices": [{"delta": {"content": "Goethe"}}]},
    {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": USAGE},
)


@asynccontextmanager
async def raw(*writes: bytes, leave_open: bool = False) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that sends every request the same bytes but lists no models; yields its address and the requests."""
    requests: list[bytes] = []
    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(sum(map(int, re.findall(rb"(?i)content-length: (\d+)", head))))
        requests.append(head + body)
        for part in [response("200 OK", b'{"data": []}')] if b"/models " in head else writes:
            writer.write(part)
            await writer.drain()
        if leave_open and b"/models " not in head:
            await ended.wait()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests
        finally:
            ended.set()


def response(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def stream(*events: object, line_end: str = "\n", done: bool = True) -> bytes:
    texts = [*(json.dumps(event) for event in events), *(["[DONE]"] if done else [])]
    body = "".join(f"data: {text}{line_end}{line_end}" for text in texts).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + f"{len(body):x}\r\n".encode() + body + b"\r\n"


def client(address: str) -> HttpClient:
    return HttpClient(address, api_key=SecretStr(SECRET), headers={"X-Given": SecretStr(GIVEN)})


async def test_a_proxy_is_sent_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw(response("407 Proxy Authentication Required", b"")) as (address, requests):
        monkeypatch.setenv("HTTPS_PROXY", address)
        http = client("https://model.example/v1")
        with pytest.raises(HttpError, match=r"the proxy refused the connection \(407\)") as caught:
            await http.post("/chat/completions", {})
        await http.aclose()
    assert not caught.value.sent
    assert requests[0].startswith(b"CONNECT model.example:443")
    assert SECRET.encode() not in requests[0]
    assert GIVEN.encode() not in requests[0]
    assert len(requests) == 1


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_not_followed(status: str) -> None:
    async with raw(response("200 OK", b"{}")) as (other, elsewhere):
        moved = response(status, b"", f"Location: {other}/v1/chat/completions")
        async with raw(moved) as (address, requests), opened(address, llm_max_retries=2) as model:
            with pytest.raises(RefusedError, match=r"redirects to 127.0.0.1, which is not followed"):
                await model.session().ainvoke("write", ASK)
    assert len([one for one in requests if one.startswith(b"POST")]) == 1
    assert elsewhere == []


@pytest.mark.parametrize("status", ["300 Multiple Choices", "302 Found", "304 Not Modified"])
async def test_only_a_success_is_a_success(status: str) -> None:
    async with raw(response(status, b"")) as (address, _):
        http = client(address)
        with pytest.raises(HttpError) as caught:
            await http.get("/list")
        await http.aclose()
    assert caught.value.status == int(status[:3])


async def streamed(model_address: str) -> str:
    heard: list[str] = []
    async with opened(model_address, llm_max_retries=0, llm_timeout_seconds=5.0) as model:
        session = model.session(on_text=lambda _, text: heard.append(text))
        reply = await session.ainvoke("write", ASK)
    assert [row.error for row in session.rows] == [None]
    assert heard[-1] == reply
    return reply


@pytest.mark.parametrize("leave_open", [True, False], ids=["open", "cut"])
async def test_a_complete_stream_is_accepted_however_it_ends(leave_open: bool) -> None:
    async with raw(stream(*CHUNKS), leave_open=leave_open) as (address, _):
        assert await streamed(address) == "Goethe"


async def test_a_reply_with_usage_is_accepted_without_an_end_marker() -> None:
    async with raw(stream(*CHUNKS, done=False)) as (address, _):
        assert await streamed(address) == "Goethe"


async def test_an_error_in_the_listener_is_raised() -> None:
    def listen(_: object, text: str) -> None:
        raise RuntimeError(text)

    last = {**CHUNKS[0], "choices": [{"delta": {"content": "Goethe"}, "finish_reason": "stop"}], "usage": USAGE}
    async with raw(stream(last)) as (address, _), opened(address, llm_max_retries=0) as model:
        with pytest.raises(RuntimeError, match="Goethe"):
            await model.session(on_text=listen).ainvoke("write", ASK)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
async def test_any_line_ending_is_accepted(line_end: str) -> None:
    async with raw(stream(*CHUNKS, line_end=line_end)) as (address, _):
        assert await streamed(address) == "Goethe"


async def test_a_long_event_is_accepted() -> None:
    long = {"choices": [{"delta": {"content": "Goethe"}}], "padding": "x" * 3_000_000}
    async with raw(stream(long, CHUNKS[1])) as (address, _):
        assert await streamed(address) == "Goethe"


@pytest.mark.parametrize(
    "body", [f"got Bearer {SECRET} and {GIVEN}".encode(), json.dumps({"error": f"bad key {SECRET} {GIVEN}"}).encode()]
)
async def test_an_echo_of_the_secrets_is_masked(body: bytes) -> None:
    async with raw(response("422 Unprocessable", body)) as (address, _):
        http = client(address)
        with pytest.raises(HttpError) as caught:
            await http.post("/chat/completions", {})
        await http.aclose()
    assert "***" in caught.value.words
    assert SECRET not in caught.value.words
    assert GIVEN not in caught.value.words


@pytest.mark.parametrize("body", [{"text": "\ud800"}, {"value": float("nan")}, {"value": object()}])
async def test_an_unserialisable_body_is_not_sent(body: dict[str, object]) -> None:
    async with raw(response("200 OK", b"{}")) as (address, requests):
        http = client(address)
        with pytest.raises(HttpError) as caught:
            await http.post("/chat/completions", body)
        await http.aclose()
    assert (caught.value.sent, caught.value.broken) == (False, True)
    assert requests == []


async def test_an_unreadable_certificate_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    with pytest.raises(SettingsError, match="SSL_CERT_FILE"):
        await client("https://model.example/v1").get("/list")


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"HTTP_PROXY": "http://10.0.0.1:8080"}, "http://10.0.0.1:8080"),
        ({"HTTP_PROXY": "10.0.0.1:8080"}, "http://10.0.0.1:8080"),
        ({"ALL_PROXY": "http://10.0.0.1:8080"}, "http://10.0.0.1:8080"),
        ({"HTTP_PROXY": "http://10.0.0.1:8080", "NO_PROXY": "127.0.0.1"}, None),
        ({"HTTP_PROXY": "http://10.0.0.1:8080", "NO_PROXY": "127.0.0.1:80"}, None),
        ({"HTTP_PROXY": "http://10.0.0.1:8080", "NO_PROXY": "localhost, 127.0.0.0/8"}, None),
        ({"HTTP_PROXY": "http://10.0.0.1:8080", "NO_PROXY": "example.org"}, "http://10.0.0.1:8080"),
    ],
)
def test_the_proxy_is_taken_from_the_environment(
    environment: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert _proxy("http://127.0.0.1:80/v1") == proxy


def test_a_non_http_proxy_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(SettingsError, match="'socks5' is not supported"):
        _proxy("https://model.example/v1")


async def test_a_client_works_in_successive_event_loops() -> None:
    async def asked(*, last: bool) -> object:
        reply = await http.get("/list")
        if last:
            await http.aclose()
        return reply

    async with raw(response("200 OK", b'{"data": []}')) as (address, requests):
        http = client(address)
        for last in (False, True):
            assert await asyncio.to_thread(asyncio.run, asked(last=last)) == {"data": []}
    assert len(requests) == 2


async def test_the_status_is_used_even_if_the_body_is_unreadable() -> None:
    cut = b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 90\r\n\r\n{}"
    async with raw(cut) as (address, _), opened(address, llm_max_retries=0) as model:
        with pytest.raises(ModelError, match=r"rejected the key \(401\)"):
            await model.session().ainvoke("write", ASK)

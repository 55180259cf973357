"""A loopback server for OpenAI's chat API that counts its requests and misbehaves on demand."""

import asyncio
import json
import random
import re
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn import Config, Server

from .scripted import universal_reply


@dataclass(frozen=True, kw_only=True)
class ServerReply:
    """The server's reply: a text with its usage, or a status and a body instead.

    `wire` is a fault below HTTP: the connection is `closed` before the first byte or `reset` after the headers, or the
    body `drip`s blanks forever or is `cut`. `streams` is whether a request for a stream is honoured.
    """

    text: str = ""
    status: int = 200
    seconds: float = 0.0
    finish_reason: str = "stop"
    streams: bool = True
    wire: Literal["closed", "reset", "drip", "cut"] | None = None
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 60}
    )


Behaviour = Callable[[dict[str, Any]], ServerReply]


def always(reply: ServerReply) -> Behaviour:
    """The same reply to every call."""
    return lambda body: reply


def helpful(seconds: float = 0.0) -> Behaviour:
    """A valid reply to every stage, after N seconds; its answer fits every kind of question."""
    return always(ServerReply(text=json.dumps(universal_reply("yes, scripted, 1 or 2")), seconds=seconds))


def disagreeing(seconds: float = 0.0) -> Behaviour:
    """Valid replies that all differ, so that the loop uses all its rounds."""

    def behaviour(body: dict[str, Any]) -> ServerReply:
        said = zlib.crc32(json.dumps(body["messages"]).encode())
        words = f"one{said} two{said} three{said}"
        reply = universal_reply(words, answer=words, deficit="reasoning_error")
        return ServerReply(text=json.dumps(reply), seconds=seconds)

    return behaviour


def quoting(seconds: float = 0.0) -> Behaviour:
    """Answers with the first sentence of the first passage in the prompt, so that draft and second answer agree."""

    def behaviour(body: dict[str, Any]) -> ServerReply:
        passage = re.search(r'<passage n="1"[^>]*>(.*?)</passage>', body["messages"][-1]["content"], re.DOTALL)
        sentence = passage[1].strip().partition(". ")[0] if passage else "Nothing"
        short = " ".join(sentence.split()[:3])
        reply = universal_reply(short, quotes=[sentence], answer=f"{sentence.rstrip('.')} [1].", confidence=0.9)
        return ServerReply(text=json.dumps(reply), seconds=seconds)

    return behaviour


def hanging(behaviour: Behaviour, share: float, *, seed: int = 42) -> Behaviour:
    """The same, but this share of the calls is answered after ten minutes."""
    chance = random.Random(seed)
    return lambda body: replace(behaviour(body), seconds=600.0) if chance.random() < share else behaviour(body)


_ACCOUNT = {
    "is_available": True,
    "balance_infos": [
        {"currency": "USD", "total_balance": "7.50", "granted_balance": "0.00", "topped_up_balance": "7.50"}
    ],
}


@dataclass
class LoopbackServer:
    """The server as seen by a test: its address, bodies and headers of received calls, account, reported models.

    `left` are calls whose client disconnected before the answer: the last message, and when (`time.monotonic`).
    """

    behaviour: Behaviour
    base_url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    billed: list[ServerReply] = field(default_factory=list)
    account: ServerReply = field(default_factory=lambda: ServerReply(body=_ACCOUNT))
    listing: ServerReply = field(default_factory=lambda: ServerReply(body={"object": "list", "data": []}))
    left: list[tuple[str, float]] = field(default_factory=list)

    async def chat(self, request: Request) -> Response:
        """Answer `POST /v1/chat/completions`."""
        body = json.loads(await request.body())
        self.bodies.append(body)
        self.headers.append(request.headers)
        reply = self.behaviour(body)
        self.billed.append(reply)
        if reply.seconds:
            await self._wait(reply.seconds, request, body)
        if reply.status != 200 or reply.body is not None:
            return _as_scripted(reply)
        if body.get("stream") and reply.streams:
            return _streamed(reply, request, body)
        message = {"role": "assistant", "content": reply.text}
        whole = JSONResponse(
            {
                "id": f"call-{len(self.bodies)}",
                "object": "chat.completion",
                "created": 0,
                "model": body.get("model"),
                "choices": [{"index": 0, "finish_reason": reply.finish_reason, "message": message}],
                "usage": reply.usage,
            }
        )
        return whole if reply.wire is None else _broken(bytes(whole.body), reply.wire, request)

    async def _wait(self, seconds: float, request: Request, body: dict[str, Any]) -> None:
        """Wait, or until the client disconnects."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                self.left.append((body["messages"][-1]["content"], time.monotonic()))

    async def balance(self, request: Request) -> Response:
        """Answer DeepSeek's `GET /user/balance`."""
        return _as_scripted(self.account)

    async def models(self, request: Request) -> Response:
        """Answer `GET /v1/models`."""
        return _as_scripted(self.listing)

    def app(self) -> Starlette:
        """The application."""
        routes = [Route(f"{prefix}/chat/completions", self.chat, methods=["POST"]) for prefix in ("/v1", "")]
        routes += [Route("/v1/models", self.models)]
        return Starlette(routes=[*routes, *(Route(f"{prefix}/user/balance", self.balance) for prefix in ("/v1", ""))])


def _streamed(reply: ServerReply, request: Request, asked: Mapping[str, Any]) -> Response:
    """The reply word by word, as server-sent events; `cut` ends it half-way."""
    words = re.findall(r"\S*\s*", reply.text)
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in words if word]
    if reply.wire == "cut":
        chunks = chunks[: len(chunks) // 2]
    else:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}]})
        with_usage = (asked.get("stream_options") or {}).get("include_usage")
        chunks += [{"choices": [], "usage": reply.usage}] if with_usage else []

    async def parts() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield b"data: " + json.dumps({"model": asked.get("model"), **chunk}).encode() + b"\n\n"
            await asyncio.sleep(0.001)
        if reply.wire == "cut":
            _reset(request)
        yield b"data: [DONE]\n\n"

    return StreamingResponse(parts(), media_type="text/event-stream")


def _broken(body: bytes, wire: str, request: Request) -> Response:
    """A reply that is never completed."""
    if wire == "closed":
        _reset(request)

    async def parts() -> AsyncIterator[bytes]:
        if wire == "drip":
            while True:
                yield b"\n"
                await asyncio.sleep(0.1)
        if wire == "cut":
            yield body[: len(body) // 2]
            await asyncio.sleep(0.01)
        _reset(request)

    # without a content length, a truncated body would seem complete
    headers = {} if wire == "drip" else {"content-length": str(len(body))}
    return StreamingResponse(parts(), media_type="application/json", headers=headers)


def _reset(request: Request) -> None:
    """Drop the connection; uvicorn gives an application no other access to it."""
    request.receive.__self__.transport.abort()  # type: ignore[attr-defined]  # the cycle of uvicorn


def _as_scripted(reply: ServerReply) -> Response:
    words = {"error": {"message": f"scripted {reply.status}", "type": "scripted", "code": None}}
    body = dict(words if reply.body is None else reply.body)
    return JSONResponse(body, status_code=reply.status, headers=dict(reply.headers))


@contextmanager
def loopback_server(behaviour: Behaviour, *, kind: type[LoopbackServer] = LoopbackServer) -> Iterator[LoopbackServer]:
    """Run a server in a thread on a free loopback port, stopped at the end."""
    state = kind(behaviour=behaviour)
    server = Server(Config(state.app(), host="127.0.0.1", port=0, log_level="critical", **_QUIET))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            thread.join(0.01)
        state.base_url = _address(server)
        yield state
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(10)


_QUIET: dict[str, Any] = {"access_log": False, "lifespan": "off", "timeout_keep_alive": 600}
"""Keep idle connections: a client that reuses one just as it is closed would lose its call."""


def _address(server: Server) -> str:
    port = server.servers[0].sockets[0].getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"


@contextmanager
def model_server(seconds: float) -> Iterator[str]:
    """The address of a `disagreeing` server in a separate process, which takes N seconds per call; for measurements."""
    command = [sys.executable, "-m", "meta_agent_rag.testing.server", str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield child.stdout.readline().strip()
        finally:
            child.kill()


if __name__ == "__main__":
    with loopback_server(disagreeing(float(sys.argv[1]))) as serving:
        sys.stdout.write(serving.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()  # until it is closed

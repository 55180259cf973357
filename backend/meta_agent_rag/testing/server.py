"""A loopback server that speaks OpenAI's chat API, counts what it is asked, and misbehaves on request."""

import asyncio
import json
import sys
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn import Config, Server

from .scripted import universal_reply


@dataclass(frozen=True, kw_only=True)
class ServerReply:
    """What the server sends: a reply text with its usage, or a status and a body in its place.

    `wire` is what goes wrong below HTTP: the connection is `reset`, the body `drip`s blanks for ever, or is `cut`.
    """

    text: str = ""
    status: int = 200
    seconds: float = 0.0
    finish_reason: str = "stop"
    wire: Literal["reset", "drip", "cut"] | None = None
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
    """A valid reply to every stage, after so many seconds."""
    return always(ServerReply(text=json.dumps(universal_reply()), seconds=seconds))


def disagreeing(seconds: float = 0.0) -> Behaviour:
    """Valid replies of which no two agree, so that the loop goes all its rounds."""

    def behaviour(body: dict[str, Any]) -> ServerReply:
        said = zlib.crc32(json.dumps(body["messages"]).encode())
        words = f"one{said} two{said} three{said}"
        reply = universal_reply(words, answer=words, deficit="reasoning_error")
        return ServerReply(text=json.dumps(reply), seconds=seconds)

    return behaviour


_ACCOUNT = {
    "is_available": True,
    "balance_infos": [
        {"currency": "USD", "total_balance": "7.50", "granted_balance": "0.00", "topped_up_balance": "7.50"}
    ],
}


@dataclass
class LoopbackServer:
    """The server's side of a test: its address, the bodies of the calls it received, and the account that it tells."""

    behaviour: Behaviour
    base_url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    billed: list[ServerReply] = field(default_factory=list)
    account: ServerReply = field(default_factory=lambda: ServerReply(body=_ACCOUNT))

    async def chat(self, request: Request) -> Response:
        """Answer `POST /v1/chat/completions`."""
        body = json.loads(await request.body())
        self.bodies.append(body)
        reply = self.behaviour(body)
        self.billed.append(reply)
        await asyncio.sleep(reply.seconds)
        if reply.status != 200 or reply.body is not None:
            return _as_scripted(reply)
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

    async def balance(self, request: Request) -> Response:
        """Answer DeepSeek's `GET /user/balance`."""
        return _as_scripted(self.account)

    def app(self) -> Starlette:
        """The application."""
        routes = [Route(f"{prefix}/chat/completions", self.chat, methods=["POST"]) for prefix in ("/v1", "")]
        return Starlette(routes=[*routes, *(Route(f"{prefix}/user/balance", self.balance) for prefix in ("/v1", ""))])


def _broken(body: bytes, wire: str, request: Request) -> Response:
    """A reply that never comes whole."""

    async def parts() -> AsyncIterator[bytes]:
        if wire == "drip":
            while True:
                yield b"\n"
                await asyncio.sleep(0.1)
        if wire == "cut":
            yield body[: len(body) // 2]
            await asyncio.sleep(0.01)
        _reset(request)

    # without its length a body that is cut would seem to be whole
    headers = {} if wire == "drip" else {"content-length": str(len(body))}
    return StreamingResponse(parts(), media_type="application/json", headers=headers)


def _reset(request: Request) -> None:
    """Drop the connection: uvicorn shows it to an application in no other way."""
    request.receive.__self__.transport.abort()  # type: ignore[attr-defined]  # the cycle of uvicorn


def _as_scripted(reply: ServerReply) -> Response:
    words = {"error": {"message": f"scripted {reply.status}", "type": "scripted", "code": None}}
    body = dict(words if reply.body is None else reply.body)
    return JSONResponse(body, status_code=reply.status, headers=dict(reply.headers))


@contextmanager
def loopback_server(behaviour: Behaviour) -> Iterator[LoopbackServer]:
    """Run a server in a thread on a free loopback port, stopped at the end."""
    state = LoopbackServer(behaviour=behaviour)
    server = Server(_config(state))
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


def _config(state: LoopbackServer) -> Config:
    return Config(state.app(), host="127.0.0.1", port=0, log_level="critical", access_log=False, lifespan="off")


def _address(server: Server) -> str:
    port = server.servers[0].sockets[0].getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"


def serve_disagreeing(seconds: float) -> None:
    """Serve until standard input closes, printing the address first: a benchmark's other side, in its own process."""
    with loopback_server(disagreeing(seconds)) as server:
        sys.stdout.write(server.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()


if __name__ == "__main__":
    serve_disagreeing(float(sys.argv[1]))

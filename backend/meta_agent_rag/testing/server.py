"""A loopback server that speaks OpenAI's chat API, counts what it is asked, and misbehaves on request."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn import Config, Server

from .scripted import universal_reply


@dataclass(frozen=True, kw_only=True)
class ServerReply:
    """What the server sends: a reply text with its usage, or an error status with its body."""

    text: str = ""
    status: int = 200
    seconds: float = 0.0
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


@dataclass
class LoopbackServer:
    """The server's side of a test: its address, and the bodies of the calls it received."""

    behaviour: Behaviour
    base_url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)

    async def chat(self, request: Request) -> Response:
        """Answer `POST /v1/chat/completions`."""
        body = json.loads(await request.body())
        self.bodies.append(body)
        reply = self.behaviour(body)
        await asyncio.sleep(reply.seconds)
        if reply.status != 200:
            words = {"error": {"message": f"scripted {reply.status}", "type": "scripted", "code": None}}
            return JSONResponse(dict(reply.body or words), status_code=reply.status, headers=dict(reply.headers))
        return JSONResponse(
            {
                "id": f"call-{len(self.bodies)}",
                "object": "chat.completion",
                "created": 0,
                "model": body.get("model"),
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply.text}}
                ],
                "usage": reply.usage,
            }
        )

    async def balance(self, request: Request) -> Response:
        """Answer DeepSeek's `GET /user/balance`."""
        info = {"currency": "USD", "total_balance": "7.50", "granted_balance": "0.00", "topped_up_balance": "7.50"}
        return JSONResponse({"is_available": True, "balance_infos": [info]})

    def app(self) -> Starlette:
        """The application."""
        routes = [Route(f"{prefix}/chat/completions", self.chat, methods=["POST"]) for prefix in ("/v1", "")]
        return Starlette(routes=[*routes, *(Route(f"{prefix}/user/balance", self.balance) for prefix in ("/v1", ""))])


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


def serve_helpful(seconds: float) -> None:
    """Serve until killed, printing the address first: the other side of a benchmark, in a process of its own."""
    with loopback_server(helpful(seconds)) as server:
        sys.stdout.write(server.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()


if __name__ == "__main__":
    serve_helpful(float(sys.argv[1]))

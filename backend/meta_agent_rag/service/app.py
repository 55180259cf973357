"""The application: routes behind a gate that every request passes, over a service that is opened once; and its log."""

import asyncio
import json
import logging
import re
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import MetaRagError, RequestError, StorageError
from .failures import as_response, timed_out
from .metrics import IN_FLIGHT, count
from .request import CLIENT_WENT, CURRENT, RequestContext, new_id
from .resources import Service
from .routes import QUESTIONS, UPLOAD, keyed, operation

_LOG = logging.getLogger(__name__)
_BODY_MEGABYTES = 0.5
"""The most of a question's body."""
UPLOAD_SECONDS = 300.0
"""The most time for receiving any other body."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
Opening = Callable[[], AbstractAsyncContextManager[Service]]
SECURITY_HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def create_app(opening: Opening) -> FastAPI:
    """The application; `opening` yields the service and keeps it open while the application runs.

    >>> app = create_app(lambda: open_service(settings, ["sample"]))  # doctest: +SKIP
    """
    from importlib.metadata import version

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with opening() as service:
            app.state.service = service
            corpora = ", ".join(map(repr, service.retrievers)) or "no corpus"
            _LOG.info("Serving %s; the time limit for a request is %g s.", corpora, service.seconds)
            yield

    app = FastAPI(
        title="Meta-Agent-RAG",
        summary="Answers from documents, checked before they are shown.",
        version=version("meta-agent-rag"),
        lifespan=lifespan,
        docs_url=None,  # its page loads third-party scripts
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat the client's own Host
        # creates spans for requests, but records no logs, which would contain the bodies
        telemetry={"metrics": False, "logs": False, "operation_spans": False, "auto_configure": False},
    )
    for router in (keyed, operation):
        app.include_router(router)
    app.add_middleware(Gate)
    for kind in (MetaRagError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refused)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    return as_response(request.state.context, error)


class Gate:
    """An ASGI middleware: id, headers, concurrency, key, rate and body size of a request; and its record."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and log it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        service, path, method = scope["app"].state.service, scope["path"], scope["method"]
        given, asks = _header(scope, b"x-request-id"), path in QUESTIONS and method == "POST"
        request_id = given if _REQUEST_ID.fullmatch(given) else new_id()
        context = RequestContext(service=service, request_id=request_id, endpoint=path[:64], asks=asks)
        scope.setdefault("state", {})["context"] = context
        CURRENT.set(context)
        IN_FLIGHT.inc()
        try:
            await self._served(scope, receive, _responder(context, send), context)
        except Exception as error:  # noqa: BLE001  # the last handler: logs it and informs the client
            if not isinstance(error.__cause__ or error, RequestError | StorageError):
                _LOG.error("failed", exc_info=error, extra={"fields": {"request_id": context.request_id}})
            if not context.status:
                await as_response(context, error)(scope, receive, _responder(context, send))
        finally:
            with suppress(StorageError):
                await service.record(context, context.status or CLIENT_WENT)
            _log_request(context, method, path)
            IN_FLIGHT.dec()
            # paths made up by a client must not become labels
            count(context, path if asks else getattr(scope.get("route"), "path", "other"))

    async def _served(self, scope: Scope, receive: Receive, send: Send, context: RequestContext) -> None:
        """Serve a request whose key is valid and within its limits, or one that needs none."""
        service, path = context.service, scope["path"]
        if any(character < " " for character in path):
            # a route's pattern accepts a trailing line feed, which the comparisons here do not
            words = "Addresses cannot contain control characters; see GET /openapi.json."
            raise RequestError(404, "not_found", words)
        if not path.startswith("/v1/") and path != "/metrics":
            await self.app(scope, receive, send)
            return
        if context.asks and service.places.locked():
            raise RequestError(503, "overloaded", "The service is at its limit; try again in a second.", retry_after=1)
        async with service.places if context.asks else nullcontext():
            kind, _, token = _header(scope, b"authorization").partition(" ")
            if kind.lower() != "bearer" or not token.strip():
                raise RequestError(401, "missing_key", "A key is required; send it as `Authorization: Bearer KEY`.")
            context.known_client = client = await service.keys.client(token.strip())
            headers, refusal = await service.limits.admit(client.id, "ask" if context.asks else "read")
            context.headers |= headers
            if refusal is not None:
                raise refusal
            if context.asks:
                whole = await _whole_body(_limited(receive, context, _BODY_MEGABYTES, context.deadline), receive)
                await _unless_left(asyncio.ensure_future(self.app(scope, whole, send)), receive, context)
            else:
                if (path, scope["method"]) == (UPLOAD, "POST"):  # the framework reads the body before it checks a scope
                    client.require("ingest")
                most, ends = service.settings.ingest_file_mb, context.arrived + UPLOAD_SECONDS
                await self.app(scope, _limited(receive, context, most, ends), send)


def _responder(context: RequestContext, send: Send) -> Send:
    """Sends a response with the gate's headers, after storing its audit row."""

    async def responding(message: Message) -> None:
        if message["type"] == "http.response.start":
            if not context.streams:
                await context.service.record(context, message["status"])
            context.status = message["status"]
            own = {**SECURITY_HEADERS, **context.headers, "x-request-id": context.request_id}
            if context.asks:
                own["x-query-id"] = context.query_id
            kept = [(name, value) for name, value in message.get("headers", []) if name.decode("latin-1") not in own]
            message = {**message, "headers": [*kept, *((name.encode(), value.encode()) for name, value in own.items())]}
        await send(message)

    return responding


async def _unless_left(work: "asyncio.Future[None]", receive: Receive, context: RequestContext) -> None:
    """Work as long as the client is connected, since an answer that nobody reads should not be paid for."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    left = asyncio.create_task(disconnected())
    try:
        await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done() and (context.streams or not context.status):
            work.cancel()
            await asyncio.wait({work})
            context.went()
        else:
            await work
    finally:
        left.cancel()
        work.cancel()


def _limited(receive: Receive, context: RequestContext, megabytes: float, ends: float) -> Receive:
    """Receives a body within limits of size and time. Raises `RequestError`."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        try:
            async with asyncio.timeout(ends - time.monotonic()):
                message = await receive()
        except TimeoutError:
            if context.asks:
                raise timed_out() from None
            words = "The upload takes too long; send less at once, or use a faster connection."
            raise RequestError(408, "upload_too_slow", words) from None
        if message["type"] == "http.disconnect" and context.asks:
            context.went()
            raise RequestError(CLIENT_WENT, "client_went", context.message or "")
        size += len(message.get("body", b""))
        if size > megabytes * 1024 * 1024:
            raise RequestError(413, "too_large", f"The body is larger than {megabytes:g} MB; send less.")
        return message

    return limited


async def _whole_body(limited: Receive, receive: Receive) -> Receive:
    """Read a body, and replay it."""
    body, more = bytearray(), True
    while more:
        message = await limited()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    left: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _header(scope: Scope, name: bytes) -> str:
    found: bytes = next((value for key, value in scope["headers"] if key == name), b"")
    return found.decode("latin-1")


class JsonLogLines(logging.Formatter):
    """A record as one line of JSON, with the fields passed as `extra={"fields": ...}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. Line breaks in a text are escaped, so that a line cannot be forged.

        Of an error it has the type and the place: neither its message nor a traceback, which may contain values.
        """
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            places = [f"{one.filename}:{one.lineno} in {one.name}" for one in traceback.extract_tb(record.exc_info[2])]
            line |= {"error_type": record.exc_info[0].__name__, "error_at": places[-1] if places else None}
        return json.dumps(line, default=str)


def _log_request(context: RequestContext, method: str, path: str) -> None:
    """Log the line of a served request: neither secrets nor its question."""
    fields: dict[str, Any] = {
        "request_id": context.request_id,
        "query_id": context.query_id if context.asks else None,
        "method": method,
        "path": path,
        "status": context.status,
        "ms": round(1000 * (time.monotonic() - context.arrived), 1),
        "client": None if context.known_client is None else context.known_client.id,
        "error": context.error,
    }
    _LOG.info("request", extra={"fields": fields})


def log_to_stderr() -> Callable[[], None]:
    """Send the log of this package, and the server's warnings, to stderr as JSON lines, until the result is called."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLogLines())
    logs = {logging.getLogger("meta_agent_rag"): logging.INFO, logging.getLogger("uvicorn"): logging.WARNING}
    for log, level in logs.items():
        log.addHandler(handler)
        log.setLevel(level)

    def ended() -> None:
        for log in logs:
            log.removeHandler(handler)

    return ended

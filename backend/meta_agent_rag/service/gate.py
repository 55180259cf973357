"""The gate for all requests: id, headers, concurrency, key, rate, and body size; and the request's record."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import RequestError, StorageError
from .access.limits import require_admitted
from .audit.rows import as_row
from .failures import PROVIDER_REFUSALS, envelope, refusal, timed_out
from .openai.faults import as_openai, fault, retry_headers, speaks_openai
from .opening import QUESTIONS, Service
from .request_record import RequestRecord, new_id
from .server.logs import REQUESTS, log_request

QUESTION_ROUTES = frozenset({"/v1/ask", "/v1/ask/stream", "/v1/chat/completions", "/v1/summaries"})
"""Each response to a known client at these addresses gets an audit row."""
_GUARDED = "/v1/"
_METRICS = "/metrics"
_UPLOADS = "/v1/documents"
"""The body of a POST to this address is not read here but written to disk as it arrives."""
_READS = "read"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECURITY_HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_CLIENT_WENT = 499
_BODY_UNREAD = frozenset({401, 408, 413})
"""Refusals after which a client may continue sending, so the connection is closed."""
_WENT = "The client disconnected before the end."


@dataclass(kw_only=True)
class Visit:
    """A request in the gate; `status` is 0 until its response begins.

    `unrecorded` is the reason why its audit row could not be stored.
    """

    service: Service
    record: RequestRecord
    asks: bool
    openai: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 0
    streams: bool = False
    unrecorded: StorageError | None = None

    def file(self, status: int) -> None:
        """Store the audit row once, before the response is sent, so that every answer has one.

        Raises `StorageError`, which is also logged.
        """
        record = self.record
        if self.asks and record.client is not None and not record.filed:
            record.filed = True
            try:
                self.service.audit.file(as_row(record, status))
            except StorageError as error:
                self.unrecorded = error
                fields = {"request_id": record.request_id, "why": str(error)}
                REQUESTS.error("The audit record cannot be stored.", exc_info=error, extra={"fields": fields})
                raise


class Gate:
    """An ASGI middleware; it takes the service from the application's state."""

    def __init__(self, app: ASGIApp, endpoint_of: Callable[[str], str]) -> None:
        self.app = app
        self.endpoint_of = endpoint_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and log it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        service: Service = scope["app"].state.service
        path, method = scope["path"], scope["method"]
        asks = path in QUESTION_ROUTES and method == "POST"
        record = RequestRecord(request_id=_request_id(scope), endpoint=path[:64])
        visit = Visit(service=service, record=record, asks=asks, openai=speaks_openai(path))
        scope.setdefault("state", {})["visit"] = visit
        responder = _Responder(visit=visit, send=send)
        service.metrics.in_flight.inc()
        try:
            if any(character < " " for character in path):
                # a route's pattern accepts a trailing line feed, which the comparisons here do not
                raise RequestError(
                    404, "not_found", "Addresses cannot contain control characters; see GET /openapi.json."
                )
            with service.places.one() if asks else nullcontext():
                await self._served(scope, receive, responder, visit)
        except Exception as raised:  # noqa: BLE001  # the last handler: logs it and informs the client
            # the framework replaces an error raised as a response begins with its own
            error = visit.unrecorded or raised
            if visit.unrecorded is None and not isinstance(error, RequestError):
                REQUESTS.error("failed", exc_info=error, extra={"fields": {"request_id": record.request_id}})
            if not visit.status:
                await as_response(visit, error)(scope, receive, responder)
        finally:
            with suppress(StorageError):
                visit.file(visit.status or _CLIENT_WENT)
            log_request(record, method, path, visit.status, questions=service.settings.service_log_questions)
            service.metrics.in_flight.dec()
            service.metrics.served(record, self.endpoint_of(path), visit.status)

    async def _served(self, scope: Scope, receive: Receive, send: "_Responder", visit: Visit) -> None:
        if not _guarded(scope["path"], visit.service):
            await self.app(scope, receive, send)
            return
        service, record = visit.service, visit.record
        record.client = await service.wrong_keys.client(service.keys, _token(scope), _peer(scope))
        window = await service.limits.admit(record.client.id, QUESTIONS if visit.asks else _READS)
        visit.headers |= window.headers()
        require_admitted(window)
        if scope["path"] == _UPLOADS and scope["method"] == "POST":
            await self.app(scope, receive, send)
            return
        deadline = record.arrived + service.budgets.total
        whole = await _whole_body(scope, receive, service.settings.service_body_kb * 1024, deadline)
        if visit.asks:
            await self._unless_left(scope, (receive, whole), send, visit)
        else:
            await self.app(scope, whole, send)

    async def _unless_left(
        self, scope: Scope, sources: tuple[Receive, Receive], send: "_Responder", visit: Visit
    ) -> None:
        """Work as long as the client is connected, since an answer that nobody reads should not be paid for.

        `sources` are the connection itself, and the body that was read from it.
        """
        connection, whole = sources
        work = asyncio.ensure_future(self.app(scope, whole, send))
        left = asyncio.create_task(_left(connection))
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and (visit.streams or not visit.status):
                work.cancel()
                await asyncio.wait({work})
                visit.record.error, visit.record.message = "client_went", _WENT
            else:
                await work
        finally:
            left.cancel()
            work.cancel()


@dataclass(kw_only=True)
class _Responder:
    """Sends a response with the gate's headers, after storing its audit row."""

    visit: Visit
    send: Send

    async def __call__(self, message: Message) -> None:
        visit = self.visit
        if message["type"] == "http.response.start":
            if not visit.streams:
                visit.file(message["status"])
            visit.status = message["status"]
            own = {**SECURITY_HEADERS, **visit.headers, "x-request-id": visit.record.request_id}
            if visit.asks:
                own["x-query-id"] = visit.record.query_id
            kept = [(name, value) for name, value in message.get("headers", []) if name.decode("latin-1") not in own]
            message = {**message, "headers": [*kept, *((name.encode(), value.encode()) for name, value in own.items())]}
        await self.send(message)


def as_response(visit: Visit, error: BaseException) -> JSONResponse:
    """A failure as a response; its code is added to the record."""
    refused = noted(visit.record, error)
    headers = {} if refused.retry_after is None else {"retry-after": str(refused.retry_after)}
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, HTTPException):
        headers |= {name.lower(): value for name, value in (error.headers or {}).items() if name.lower() == "allow"}
    if refused.status in _BODY_UNREAD:
        headers["connection"] = "close"
    if not visit.openai:
        return JSONResponse(envelope(refused, visit.record.request_id), status_code=refused.status, headers=headers)
    refused = as_openai(refused)
    return JSONResponse(fault(refused), status_code=refused.status, headers={**headers, **retry_headers(refused)})


def noted(record: RequestRecord, error: BaseException) -> RequestError:
    """The refusal for the client; the record receives its code and the real cause.

    Of a rejected body, it receives only what the client is told: field and fault, no values.
    """
    refused = refusal(error)
    record.error = refused.code
    # pydantic's own text repeats the rejected values, which may be secret
    cause = refused if isinstance(error, RequestValidationError) else error
    record.message = f"{type(cause).__name__}: {cause}"[:1000]
    if refused.code in PROVIDER_REFUSALS:
        REQUESTS.error("%s", error, extra={"fields": {"request_id": record.request_id, "error": refused.code}})
    return refused


def _request_id(scope: Scope) -> str:
    """The client's own id if it is harmless, else a new one."""
    given = _header(scope, b"x-request-id")
    return given if _REQUEST_ID.fullmatch(given) else new_id()


def _token(scope: Scope) -> str:
    """The bearer token; raises `RequestError` with 401 if it is missing."""
    kind, _, token = _header(scope, b"authorization").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise RequestError(401, "missing_key", "A key is required; send it as `Authorization: Bearer KEY`.")
    return token.strip()


def _too_large(most: int) -> RequestError:
    return RequestError(413, "too_large", f"The body is larger than {most // 1024} KB; send less.")


def _guarded(path: str, service: Service) -> bool:
    """Does this address require a key?"""
    return path.startswith(_GUARDED) or (path == _METRICS and not service.settings.service_open_metrics)


def _peer(scope: Scope) -> str:
    """The peer address of the connection."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _header(scope: Scope, name: bytes) -> str:
    found: bytes = next((value for key, value in scope["headers"] if key == name), b"")
    return found.decode("latin-1")


async def _left(connection: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await connection())["type"] != "http.disconnect":
        pass


async def _whole_body(scope: Scope, receive: Receive, most: int, deadline: float) -> Receive:
    """Read the body within its time and size limits, and replay it. Raises `RequestError` (413, 504)."""
    announced = _header(scope, b"content-length")
    if announced.isdecimal() and int(announced) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestError(_CLIENT_WENT, "client_went", _WENT)
                part = message.get("body", b"")
                size, more = size + len(part), message.get("more_body", False)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError:
        raise timed_out() from None
    body: list[dict[str, Any]] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

    async def again() -> Message:
        return body.pop() if body else await receive()

    return again

"""The server processes: uvicorn with limits on connections, and its workers."""

import asyncio
import errno
import logging
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from ..errors import InputError, SettingsError
from ..settings import Settings
from .app import create_app
from .logs import log_to_stderr
from .resources import open_service

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .resources import Service

DRAIN_SECONDS = 7
"""The part of the ten seconds for shutdown that requests may take; the rest is for the audit log and the stores."""
HEAD_SECONDS = 10.0
"""The time for the headers of a request, from the connection or their first byte, and for data after a response."""
_BACKLOG = 32
"""Connections accepted at once, before any of them can be counted."""
_LOG_SECONDS = 60.0
_LOG = logging.getLogger(__name__)
Opened: TypeAlias = "Callable[[], AbstractAsyncContextManager[Service]]"


def serve(settings: Settings, corpora: Sequence[str], *, host: str, port: int, workers: int = 1) -> None:
    """Serve corpora until SIGTERM or SIGINT. Raises a `MetaRagError` that says what prevents it from serving."""
    if workers > 1 and (settings.qdrant_url is None or settings.elasticsearch_url is None):
        raise SettingsError(
            "With embedded indexes, a worker sees only its own uploads; set QDRANT_URL and ELASTICSEARCH_URL, "
            "or serve with --workers 1."
        )
    if workers > 1 and settings.redis_url is None:
        raise SettingsError(
            "Several workers need Redis to share rate limits; set REDIS_URL, or serve with --workers 1."
        )
    serve_opened(partial(open_service, settings, tuple(corpora)), host=host, port=port, workers=workers)


def serve_opened(opening: Opened, *, host: str, port: int, workers: int = 1) -> None:
    """Serve what `opening` yields, and close it at the end; requests in progress are finished first.

    For several workers, `opening` must be picklable.
    """
    with ExitStack() as stack:
        stack.callback(log_to_stderr())
        listener = stack.enter_context(bound(host, port))
        address = f"[{host}]" if ":" in host else host
        listening = f"Listening on http://{address}:{listener.getsockname()[1]}"
        if workers == 1:
            asyncio.run(_served(opening, listener, listening))
        else:
            asyncio.run(_served(opening, None, listening))  # reports once what prevents it; builds what is missing
            config = server_config(partial(_worker, opening))
            config.factory, config.workers = True, workers
            Multiprocess(config, sockets=[listener]).run()
        _LOG.info("Stopped.")


async def _served(opening: Opened, listener: socket.socket | None, listening: str) -> None:
    """Open the service and serve it at the listener, if there is one."""
    async with opening() as service:
        if not any(client.state == "valid" for client in await service.keys.all()):
            _LOG.warning("No valid key exists yet; create one with `marag keys create NAME`.")

        @asynccontextmanager
        async def opened() -> "AsyncIterator[Service]":
            yield service

        _LOG.info(listening)
        if listener is not None:
            await run_server(server_config(create_app(opened)), listener)


def _worker(opening: Opened) -> "FastAPI":
    """The application of a worker process, which ends with its parent."""
    import multiprocessing

    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()
    log_to_stderr()
    _LOG.info("Worker %d started.", os.getpid())
    return create_app(opening)


async def run_server(config: Config, listener: socket.socket) -> None:
    """Serve at a bound socket until SIGTERM or SIGINT."""
    server = Server(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn stops on a signal and then raises it again: the service must be closed before that
        signal.signal(number, lambda *_: None)
    asyncio.get_running_loop().set_exception_handler(LimitedProtocol.limit.without_tracebacks)
    await server.serve(sockets=[listener])


def server_config(app: Any) -> Config:
    """The uvicorn configuration of an application."""
    return Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        http=LimitedProtocol,
        backlog=_BACKLOG,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


def bound(host: str, port: int) -> socket.socket:
    """A socket bound to an address. Raises `InputError` if it is not available."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise InputError(f"Port {port} on {host!r} is in use; choose another, or 0 for any free one.") from None
        raise InputError(f"Cannot listen on {host!r}, port {port!r} ({error}); choose another host or port.") from None
    return listener


@dataclass(kw_only=True)
class ConnectionLimit:
    """The open connections by address: a quarter of the descriptors for all, half of that for one address."""

    _open: Counter[str] = field(default_factory=Counter, repr=False)
    _logged: float = float("-inf")

    def take(self, address: str) -> bool:
        """Count a connection, unless there are too many."""
        most = _descriptors() // 4
        if self._open.total() >= most or self._open[address] >= most // 2:
            self._log_once("Connections from %s are closed: too many are open (limit %d).", address, most // 2)
            return False
        self._open[address] += 1
        return True

    def release(self, address: str) -> None:
        """A counted connection has ended."""
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def without_tracebacks(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A handler for errors of the loop: asyncio reports every connection for which no descriptor is left."""
        if isinstance(context.get("exception"), OSError) and "socket.accept" in str(context.get("message")):
            self._log_once("A connection cannot be accepted (%s).", context["exception"])
        else:
            loop.default_exception_handler(context)

    def _log_once(self, words: str, *values: object) -> None:
        if time.monotonic() - self._logged > _LOG_SECONDS:
            self._logged = time.monotonic()
            _LOG.warning(words, *values)


def _descriptors() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 4096
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class LimitedProtocol(H11Protocol):
    """uvicorn's protocol with limits before a request: on connections, and on the time for its headers.

    The body is limited by the deadline of its request; uvicorn itself limits nothing before that.
    """

    head_seconds = HEAD_SECONDS
    limit = ConnectionLimit()
    _address: str | None = None
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """A client has connected and not sent anything yet."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if self.limit.take(address):
            self._address = address
            self._watch()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Data arrived: part of the headers, of a body, or unsolicited."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self._unwatch()
        if self._address is not None:
            self.limit.release(self._address)
            self._address = None
        super().connection_lost(exc)

    def _watch(self) -> None:
        served = self.cycle is not None and not self.cycle.response_complete
        if served or self.transport.is_closing():
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(self.head_seconds, self.transport.close)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

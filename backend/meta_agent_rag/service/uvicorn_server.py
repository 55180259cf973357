"""The server processes: uvicorn with limits on connections, and its workers."""

import asyncio
import errno
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from ..errors import InputError, SettingsError
from ..settings import Settings
from .app import create_app, log_to_stderr
from .resources import open_service

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .resources import Service

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
        # with several workers, this reports once what prevents them, and builds what is missing
        asyncio.run(_served(opening, listener if workers == 1 else None, listening))
        if workers > 1:
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
            for number in (signal.SIGTERM, signal.SIGINT):
                # uvicorn stops on a signal and then raises it again: the service must be closed before that
                signal.signal(number, lambda *_: None)
            await Server(server_config(create_app(opened))).serve(sockets=[listener])


def _worker(opening: Opened) -> "FastAPI":
    """The application of a worker process."""
    log_to_stderr()
    _LOG.info("Worker %d started.", os.getpid())
    return create_app(opening)


def server_config(app: Any) -> Config:
    """The uvicorn configuration of an application."""
    return Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        http=LimitedProtocol,
        backlog=32,  # connections accepted at once, before any of them can be counted
        server_header=False,
        timeout_graceful_shutdown=7,  # of ten seconds; the rest is for the audit log and the stores
        timeout_worker_healthcheck=60,  # a worker imports everything before it answers
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


class LimitedProtocol(H11Protocol):
    """uvicorn's protocol, which closes surplus connections, and those that send no request in time.

    All may have a quarter of the process's descriptors, one address half of that. A body is limited by the deadline
    of its request.
    """

    head_seconds = 10.0
    _logged: ClassVar[float] = float("-inf")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """A client has connected and not sent anything yet."""
        super().connection_made(transport)
        most, address = _descriptors() // 4, _address(self)
        own = sum(_address(other) == address for other in self.connections)
        if len(self.connections) > most or own > most // 2:
            if time.monotonic() - self._logged > 60:
                LimitedProtocol._logged = time.monotonic()
                _LOG.warning("Connections from %s are closed: too many are open (limit %d).", address, most // 2)
            self.connections.discard(self)  # else those being closed would count against every other address
            transport.abort()
        else:
            self.loop.call_later(self.head_seconds, self._close_silent)

    def _close_silent(self) -> None:
        if not self.cycle and not self.transport.is_closing():
            self.transport.close()


def _address(connection: object) -> str:
    return (getattr(connection, "client", None) or ("",))[0]


def _descriptors() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 4096
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]

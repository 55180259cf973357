"""Runs the application with uvicorn until a signal; requests in progress are finished first."""

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from fastapi import FastAPI

from ...settings import Settings
from ..app import Opening, create_app
from ..opening import Service, open_service
from .header_timeout import HeaderTimeoutProtocol
from .listening import bound
from .logs import logging_to_stderr
from .workers import require_servers, supervise

if TYPE_CHECKING:
    from uvicorn import Config

_LOG = logging.getLogger(__name__)
_BACKLOG = 32
"""Connections accepted at once, before any of them can be counted."""
DRAIN_SECONDS = 7
"""The part of the ten seconds for shutdown that requests may take; the rest is for the audit log and the stores."""


def serve(settings: Settings, corpora: Sequence[str], *, host: str, port: int, workers: int = 1) -> None:
    """Serve corpora until SIGTERM or SIGINT. Raises a `MetaRagError` that says what prevents it from serving."""
    if workers > 1:
        require_servers(settings)

    serve_opened(partial(open_service, settings, corpora), host=host, port=port, workers=workers)


def serve_opened(opening: Opening, *, host: str, port: int, workers: int = 1) -> None:
    """Serve what `opening` yields, and close it at the end; requests in progress are finished first."""
    with logging_to_stderr(), bound(host, port) as listener:
        if workers == 1:
            asyncio.run(_served(opening, listener, lambda: None))
        else:
            supervise(lambda ready: asyncio.run(_served(opening, listener, ready)), workers)
            _LOG.info("Stopped.")


async def _served(opening: Opening, listener: socket.socket, ready: Callable[[], None]) -> None:
    from uvicorn import Server

    async with opening() as service:
        await _hint_at_keys(service)

        @asynccontextmanager
        async def opened() -> AsyncIterator[Service]:
            yield service

        asyncio.get_running_loop().set_exception_handler(HeaderTimeoutProtocol.connections_limit.without_tracebacks)
        server = Server(server_config(create_app(opened)))
        for number in (signal.SIGTERM, signal.SIGINT):
            # uvicorn stops on a signal and then raises it again: the service must be closed before that
            signal.signal(number, lambda *_: None)
        host, port = listener.getsockname()[:2]
        _LOG.info("Listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)
        ready()
        await server.serve(sockets=[listener])
    _LOG.info("Stopped.")


def server_config(app: FastAPI) -> "Config":
    """The uvicorn configuration of the application."""
    from uvicorn import Config

    return Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        http=HeaderTimeoutProtocol,
        backlog=_BACKLOG,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


async def _hint_at_keys(service: Service) -> None:
    now = datetime.now(UTC)
    if not any(record.state(now) == "valid" for record in await service.keys.all()):
        _LOG.warning("No valid key exists yet; create one with `marag keys create NAME`.")

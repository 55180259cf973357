"""Runs the application under uvicorn, until a signal; what is under way is finished first."""

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from ..settings import Settings
from .app import Opening, create_app
from .listening import bound
from .logs import logging_to_stderr
from .parts import Service, open_service

_LOG = logging.getLogger(__name__)
DRAIN_SECONDS = 7
"""Of the ten seconds that an end may take; the audit log and the stores have the others."""


def serve(settings: Settings, corpora: Sequence[str], *, host: str, port: int) -> None:
    """Serve corpora until SIGTERM or SIGINT. Raises a `MetaRagError` that says what keeps it from serving."""
    serve_opened(lambda: open_service(settings, corpora), host=host, port=port)


def serve_opened(opening: Opening, *, host: str, port: int) -> None:
    """Serve what `opening` gives, and close it at the end; what is under way is finished first."""
    with logging_to_stderr(), bound(host, port) as listener:
        asyncio.run(_served(opening, listener))


async def _served(opening: Opening, listener: socket.socket) -> None:
    from uvicorn import Config, Server

    async with opening() as service:
        await _hint_at_keys(service)

        @asynccontextmanager
        async def opened() -> AsyncIterator[Service]:
            yield service

        server = Server(
            Config(
                create_app(opened),
                log_config=None,
                access_log=False,
                lifespan="on",
                server_header=False,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            # uvicorn stops at a signal, and then raises it again: by then the service must still close
            signal.signal(number, lambda *_: None)
        host, port = listener.getsockname()[:2]
        _LOG.info("Listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)
        await server.serve(sockets=[listener])
    _LOG.info("Stopped.")


async def _hint_at_keys(service: Service) -> None:
    now = datetime.now(UTC)
    if not any(record.state(now) == "valid" for record in await service.keys.all()):
        _LOG.warning("There is no valid key yet; make one with `marag keys create NAME`.")

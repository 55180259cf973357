"""Serves the app with uvicorn, in one event loop with all its resources, until a signal."""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from ..service.server import bound
from .app import create_demo
from .appearance import head, style_sheet, theme
from .workbench import Workbench

_LOG = logging.getLogger(__name__)

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")

Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Workbench]]


def launch(opening: Opening, *, host: str, port: int) -> None:
    """Serve the app until it is stopped. Raises `InputError` if the address is not available."""
    with bound(host, port) as listener:
        asyncio.run(_served(opening, listener))


async def _served(opening: Opening, listener: socket.socket) -> None:
    from uvicorn import Config, Server

    async with opening() as workbench:
        host, port = listener.getsockname()[:2]
        app = mounted(workbench, hosts=_LOOPBACK if host in _LOOPBACK else ("*",))
        _LOG.warning("Demo running at http://%s:%d (Ctrl+C stops it).", f"[{host}]" if ":" in host else host, port)
        await Server(Config(app, log_level="warning", timeout_graceful_shutdown=2)).serve([listener])


def mounted(workbench: Workbench, *, hosts: Sequence[str] = _LOOPBACK) -> FastAPI:
    """The app as ASGI: rendered in the browser, without analytics or third-party requests.

    Requests whose Host header names none of `hosts` are rejected, so that another site's page cannot reach a demo on
    this machine by rebinding its name.
    """
    import gradio as gr

    demo = create_demo(workbench)
    demo.queue(default_concurrency_limit=None)  # visitors do not wait for each other; the model limits its calls
    # otherwise, Gradio keeps 10,000 events for a statistics page, which is off here, and tabulates them after each one
    demo._queue.ANALYTICS_MAX_EVENTS, demo._queue.ANAYLTICS_CACHE_FREQUENCY = 1, sys.maxsize
    # Gradio checks that a file lies in its upload folder only in an app that was launched; a mounted one never is
    demo.has_launched = demo.is_running = True
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    gr.mount_gradio_app(
        app,
        demo,
        path="/",
        theme=theme(),
        css=style_sheet(),
        head=head(),
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        mcp_server=False,
        enable_monitoring=False,
        show_error=False,
        max_file_size=int(workbench.settings.ingest_file_mb * 2**20),
    )
    return app

"""The app: a heading, and a tab for each way of watching the loop."""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from html import escape
from typing import TYPE_CHECKING, TypeAlias

from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from ..errors import MetaRagError
from ..llm.opening import described
from ..service.uvicorn_server import bound
from .appearance import head, style_sheet, theme
from .tabs import chat, coach, loop, runs, tour
from .workbench import Workbench

if TYPE_CHECKING:
    import gradio as gr

_KEPT = (600, 3600)
"""Seconds: the interval of clean-ups of uploads, and their maximum age."""
_TABS = ("Tour", "Loop", "Runs", "Chat", "Coach")


def create_demo(workbench: Workbench) -> "gr.Blocks":
    """The app over a workbench; `?tab=NAME` opens a tab, `?run=NAME` the tab Runs, `?question=ID` the tab Loop."""
    import gradio as gr

    demo: gr.Blocks
    with gr.Blocks(title="Meta-Agent-RAG", analytics_enabled=False, fill_width=True, delete_cache=_KEPT) as demo:
        gr.HTML(heading(workbench), elem_id="marag-heading")
        with gr.Tabs(elem_id="marag-tabs") as tabs:
            of_tour, of_loop, of_runs, of_chat, of_coach = (gr.Tab(label, id=label.lower()) for label in _TABS)
            with of_tour:
                tour.build(workbench)
            with of_loop:
                loop.build(workbench)
            with of_runs:
                runs.build(workbench)
            with of_chat:
                own = chat.build(workbench)
            with of_coach:
                coach.build(workbench, own)

        def chosen(request: gr.Request) -> gr.Tabs:
            asked = request.query_params
            leads_to = "runs" if asked.get("run") else "loop" if asked.get("question") else "tour"
            wanted = (asked.get("tab") or leads_to).lower()
            return gr.Tabs(selected=wanted if wanted in map(str.lower, _TABS) else "tour")

        demo.load(chosen, outputs=tabs, show_progress="hidden", api_visibility="private")
    return demo


def heading(workbench: Workbench) -> str:
    """The heading as HTML."""
    return (
        '<header class="marag-heading"><h1>Meta-Agent-RAG</h1>'
        "<p>Watch an answer being questioned, diagnosed and repaired.</p>"
        f'<p class="marag-model">{escape(model_line(workbench))}</p></header>'
    )


def model_line(workbench: Workbench) -> str:
    """The answering model, or the reason why there is none."""
    try:
        return f"New questions are answered by {described(workbench.settings)}."
    except MetaRagError as fault:
        return f"No model: {fault}"


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

"""The app: a heading, and a tab for each way of watching the loop."""

import asyncio
import logging
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.resources import files
from typing import TYPE_CHECKING, TypeAlias

from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from ..errors import MetaRagError
from ..llm.opening import described
from ..service.uvicorn_server import bound
from .cards import html
from .tabs.loop import Loop
from .tabs.own_model import OwnModelPanel
from .tabs.recorded import Runs, Tour
from .tabs.tab import Tab, visitor_of
from .tabs.talk import Chat, Teaching
from .vocabulary import unexpected
from .workbench import Workbench

if TYPE_CHECKING:
    import gradio as gr
    from gradio.themes import Base

_LOG = logging.getLogger(__name__)
_KEPT = (600, 3600)
"""Seconds: the interval of clean-ups of uploads, and their maximum age."""


def create_demo(workbench: Workbench) -> "gr.Blocks":
    """The app over a workbench.

    `?tab=NAME` opens a tab, `?run=NAME` the tab Runs; `?question=ID` opens a question of the tab Loop, or of another.
    """
    import gradio as gr

    kinds = {"Tour": Tour, "Loop": Loop, "Runs": Runs, "Chat": Chat, "Coach": Teaching}
    tabs: Mapping[str, Tab] = {label: kind(workbench=workbench) for label, kind in kinds.items()}
    parts = list(tabs.values())
    demo: gr.Blocks
    with gr.Blocks(title="Meta-Agent-RAG", analytics_enabled=False, fill_width=True, delete_cache=_KEPT) as demo:
        gr.HTML(heading(workbench), elem_id="marag-heading")
        if workbench.settings.demo_own_models != "off":
            panel = OwnModelPanel(workbench=workbench, others=tuple(tabs.values()))
            panel.lay_out()
            panel.connect(demo)
            parts.append(panel)
        with gr.Tabs(elem_id="marag-tabs") as selected:
            for label, tab in tabs.items():
                with gr.Tab(label, id=label.lower()):
                    tab.lay_out()
        for tab in tabs.values():
            tab.connect(demo)

        def arrived(request: gr.Request) -> gr.Tabs:
            asked = request.query_params
            leads_to = "runs" if asked.get("run") else "loop" if asked.get("question") else "tour"
            wanted = (asked.get("tab") or leads_to).lower()
            return gr.Tabs(selected=wanted if wanted in map(str.lower, tabs) else "tour")

        async def left(request: gr.Request) -> None:
            for part in parts:
                part.left(visitor_of(request))
            await workbench.left(visitor_of(request))

        demo.load(arrived, outputs=selected, show_progress="hidden", api_visibility="private")
        demo.unload(left)
    return demo


def heading(workbench: Workbench) -> str:
    """The heading, with the answering model or the reason why there is none."""
    try:
        served = re.sub(r" at [^\s;,]+", "", described(workbench.settings))  # not the endpoint's address
        model = f"New questions are answered by {served}."
    except MetaRagError as fault:
        model = f"No model: {unexpected(fault)}"
    return html("heading", model)


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
        theme=_theme(),
        css=_asset("appearance.css"),
        head=f"<script>{_asset('page.js')}</script>",
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        mcp_server=False,
        enable_monitoring=False,
        show_error=False,
        max_file_size=int(workbench.settings.ingest_file_mb * 2**20),
    )
    return app


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


_SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")


def _theme() -> "Base":
    """Gradio's plain theme in calm colours; nothing is fetched from third parties."""
    import gradio as gr

    plain = gr.themes.Base(
        primary_hue="indigo",
        secondary_hue="teal",
        neutral_hue="slate",
        radius_size="md",
        font=list(_SANS),
        font_mono=list(_MONO),
    )
    # Gradio's own colours are below the contrast of 4.5 that WCAG AA requires for text
    return plain.set(
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        input_placeholder_color="*neutral_600",
        input_placeholder_color_dark="*neutral_300",
        color_accent="*primary_600",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_background_fill_hover_dark="*primary_700",
    )

"""The app: a heading and a tab for each way of watching the loop."""

from typing import TYPE_CHECKING

from .heading import heading
from .views import chat, coach, loop, runs
from .workbench import Workbench

if TYPE_CHECKING:
    import gradio as gr

_KEPT = (600, 3600)
"""Seconds: how often uploads are looked at, and how old one may become."""
_TABS = (("Loop", loop), ("Runs", runs), ("Chat", chat), ("Coach", coach))


def create_demo(workbench: Workbench) -> "gr.Blocks":
    """The app over a workbench; `?tab=NAME` opens a tab, and `?run=NAME` that of the runs."""
    import gradio as gr

    demo: gr.Blocks
    with gr.Blocks(title="Meta-Agent-RAG", analytics_enabled=False, fill_width=True, delete_cache=_KEPT) as demo:
        gr.HTML(heading(workbench), elem_id="marag-heading")
        with gr.Tabs(elem_id="marag-tabs") as tabs:
            for label, view in _TABS:
                with gr.Tab(label, id=label.lower()):
                    view.build(workbench)

        def chosen(request: gr.Request) -> gr.Tabs:
            wanted = request.query_params.get("tab") or ("runs" if request.query_params.get("run") else "loop")
            return gr.Tabs(selected=wanted if wanted in {label.lower() for label, _ in _TABS} else "loop")

        demo.load(chosen, outputs=tabs, show_progress="hidden", api_visibility="private")
    return demo

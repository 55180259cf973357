"""The app: a heading, and a tab for each way of watching the loop."""

from html import escape
from typing import TYPE_CHECKING

from ..errors import MetaRagError
from ..llm.opening import described
from .views import chat, coach, loop, runs, tour
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

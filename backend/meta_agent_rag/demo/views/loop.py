"""The tab Loop: one question, step by step."""

from ..workbench import Workbench


def build(workbench: Workbench) -> None:
    """Lay the tab out."""
    import gradio as gr

    gr.Markdown("Loop: nothing here yet.")

"""The tab Chat."""

from ..workbench import Workbench


def build(workbench: Workbench) -> None:
    """Lay the tab out."""
    import gradio as gr

    gr.Markdown("Chat: nothing here yet.")

"""The tab Runs."""

from ..workbench import Workbench


def build(workbench: Workbench) -> None:
    """Lay the tab out."""
    import gradio as gr

    gr.Markdown("Runs: nothing here yet.")

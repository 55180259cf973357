"""The words above the tabs: what this is, and which model answers."""

from html import escape

from ..errors import MetaRagError
from ..llm.opening import described
from .workbench import Workbench


def heading(workbench: Workbench) -> str:
    """The heading as HTML."""
    return (
        '<header class="marag-heading"><h1>Meta-Agent-RAG</h1>'
        "<p>Watch an answer being doubted, diagnosed and repaired.</p>"
        f'<p class="marag-model">{escape(model_line(workbench))}</p></header>'
    )


def model_line(workbench: Workbench) -> str:
    """Which model answers, or what keeps one from answering."""
    try:
        return f"Model: {described(workbench.choice, workbench.settings)}."
    except MetaRagError as fault:
        return f"No model: {fault}"

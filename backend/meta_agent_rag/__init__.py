"""Multi-hop question answering that knows when its own answer is inadequate, and why.

>>> from meta_agent_rag import Settings
>>> Settings.load(["MAX_METACOGNITIVE_ROUNDS=2"]).max_metacognitive_rounds
2
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent.context import Task
    from .agent.deficits import Deficit, Findings, discover_deficits
    from .agent.derivation.values import as_quantity
    from .agent.engine import Answer, Engine, Step, open_engine
    from .agent.graph import build_graph
    from .agent.state import Diagnosis, Repair, Round, Signals
    from .asking import answer, grounded_answer
    from .errors import MetaRagError
    from .llm.ledger import Ledger
    from .retrieval.open_retriever import open_retriever
    from .retrieval.passage import Passage
    from .settings import Settings
    from .text.dates import as_date

# Set before any of these libraries is imported; the first five would report their use to their vendors.
for _name, _value in {
    "DO_NOT_TRACK": "1",
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "ORT_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Otherwise Ray copies the working folder to every node, and starts `uv run` there if it started this process.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "TOKENIZERS_PARALLELISM": "false",  # a warning at each fork
}.items():
    os.environ.setdefault(_name, _value)

__all__ = [
    "Answer",
    "Deficit",
    "Diagnosis",
    "Engine",
    "Findings",
    "Ledger",
    "MetaRagError",
    "Passage",
    "Repair",
    "Round",
    "Settings",
    "Signals",
    "Step",
    "Task",
    "answer",
    "as_date",
    "as_quantity",
    "build_graph",
    "discover_deficits",
    "grounded_answer",
    "open_engine",
    "open_retriever",
]

_HOMES = {
    "Answer": "agent.engine",
    "Deficit": "agent.deficits",
    "Diagnosis": "agent.state",
    "Engine": "agent.engine",
    "Findings": "agent.deficits",
    "Ledger": "llm.ledger",
    "MetaRagError": "errors",
    "Passage": "retrieval.passage",
    "Repair": "agent.state",
    "Round": "agent.state",
    "Settings": "settings",
    "Signals": "agent.state",
    "Step": "agent.engine",
    "Task": "agent.context",
    "answer": "asking",
    "as_date": "text.dates",
    "as_quantity": "agent.derivation.values",
    "build_graph": "agent.graph",
    "discover_deficits": "agent.deficits",
    "grounded_answer": "asking",
    "open_engine": "agent.engine",
    "open_retriever": "retrieval.open_retriever",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import meta_agent_rag` is fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

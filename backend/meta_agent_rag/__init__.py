"""Multi-hop question answering that knows when its own answer is inadequate, and why.

>>> from meta_agent_rag import Settings
>>> Settings.load(["MAX_METACOGNITIVE_ROUNDS=2"]).max_metacognitive_rounds
2
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent.deficits import Deficit, discover_deficits
    from .agent.engine import Answer, Engine, open_engine
    from .agent.graph import build_graph
    from .agent.state import Round
    from .asking import answer
    from .errors import MetaRagError
    from .llm.ledger import Ledger
    from .retrieval.passage import Passage
    from .settings import Settings

__all__ = [
    "Answer",
    "Deficit",
    "Engine",
    "Ledger",
    "MetaRagError",
    "Passage",
    "Round",
    "Settings",
    "answer",
    "build_graph",
    "discover_deficits",
    "open_engine",
]

_HOMES = {
    "Answer": "agent.engine",
    "Deficit": "agent.deficits",
    "Engine": "agent.engine",
    "Ledger": "llm.ledger",
    "MetaRagError": "errors",
    "Passage": "retrieval.passage",
    "Round": "agent.state",
    "Settings": "settings",
    "answer": "asking",
    "build_graph": "agent.graph",
    "discover_deficits": "agent.deficits",
    "open_engine": "agent.engine",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for, so that `import meta_agent_rag` is instant."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

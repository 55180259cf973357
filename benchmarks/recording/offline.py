"""Stubs for model and corpus during a replay, which must not reach either."""

from collections.abc import Sequence

from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.testing import ScriptedModel

from .player import ReplayError


class NoModel(ScriptedModel):
    """A chat model that serves nothing: the tape in front of it answers."""

    async def complete(self, request: Request) -> Reply:
        """Raise: a replay makes no call."""
        raise ReplayError(f"A replay makes no call, but stage {request.stage!r} asked for one; record the run again.")


class NoSearch:
    """A `Retriever` that finds nothing; the tape in front of it answers."""

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """Raise: a replay searches nothing."""
        raise ReplayError(f"A replay makes no search, but was asked for {' | '.join(queries)!r}; record the run again.")

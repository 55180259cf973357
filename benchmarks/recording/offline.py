"""Stubs for model and corpus during a replay, which must not reach either."""

from collections.abc import Sequence
from dataclasses import dataclass

from meta_agent_rag.llm.transport import Reply, Request
from meta_agent_rag.retrieval.hybrid import Retrieval

from .player import ReplayError


@dataclass(frozen=True, kw_only=True)
class NoModel:
    """A `Transport` under the recorded endpoint's name; it serves nothing."""

    endpoint: str

    async def complete(self, request: Request) -> Reply:
        """Raise: a replay makes no call."""
        raise ReplayError(f"A replay makes no call, but stage {request.stage!r} asked for one; record the run again.")

    async def aclose(self) -> None:
        """Nothing to release."""


class NoSearch:
    """A `Retriever` that finds nothing; the tape in front of it answers."""

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """Raise: a replay searches nothing."""
        raise ReplayError(f"A replay makes no search, but was asked for {' | '.join(queries)!r}; record the run again.")

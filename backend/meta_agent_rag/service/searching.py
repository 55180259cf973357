"""A retriever for one request: it knows how long it took, what it was asked, and survives an index that is down."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..retrieval.hybrid import HybridRetriever, Retrieval, Retriever
from .inquiry import Inquiry


@dataclass(frozen=True, kw_only=True)
class WatchedRetriever:
    """Tells the inquiry of every search."""

    inquiry: Inquiry
    retriever: Retriever

    @classmethod
    def over(cls, retriever: Retriever, inquiry: Inquiry, *, side_seconds: float) -> "WatchedRetriever":
        """Watch a retriever; of a hybrid one either index may fail or take longer than `side_seconds`."""

        def note(side: str, fault: Exception) -> None:
            inquiry.degraded[side] = f"{type(fault).__name__}: {fault}"

        if isinstance(retriever, HybridRetriever):
            retriever = replace(retriever, side_seconds=side_seconds, on_fault=note)
        return cls(inquiry=inquiry, retriever=retriever)

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        started = time.perf_counter()
        self.inquiry.queries.extend(queries)
        try:
            return await self.retriever.retrieve(queries, k=k, exclude=exclude)
        finally:
            self.inquiry.took("retrieval", time.perf_counter() - started)

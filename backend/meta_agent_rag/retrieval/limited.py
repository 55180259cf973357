"""Retrieval from some of a corpus's documents alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from .hybrid import Retrieval, Retriever
from .passage import Found
from .screening.guardrails import Dropped

_WIDER = (4, 12)
"""How many times as many passages as wanted are searched, first and, where that does not do, once more."""


@dataclass(frozen=True, kw_only=True)
class LimitedRetriever:
    """A `Retriever` that keeps to documents by their ids: it searches on past the others, as far as the pool goes."""

    retriever: Retriever
    documents: frozenset[str]

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        kept: list[Found] = []
        dropped: list[Dropped] = []
        retrieval = Retrieval()
        for times in _WIDER:
            retrieval = await self.retriever.retrieve(queries, k=times * k, exclude=exclude)
            kept += [found for found in retrieval.found if found.passage.doc_id in self.documents]
            dropped += retrieval.dropped
            exclude = exclude.union(found.passage.id for found in retrieval.found)
            if len(kept) >= k or not retrieval.found:
                break
        return Retrieval(found=tuple(kept[:k]), dropped=tuple(dict.fromkeys(dropped)), pool_ids=retrieval.pool_ids)


def limited(retriever: Retriever, documents: frozenset[str]) -> Retriever:
    """The retriever, kept to these documents if there are any."""
    return LimitedRetriever(retriever=retriever, documents=documents) if documents else retriever

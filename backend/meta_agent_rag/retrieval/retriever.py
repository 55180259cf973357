"""What a retriever is, what it returns, and how it is limited to some documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .passage import Found
from .screening import Dropped


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """The result of a retrieval.

    `found` are at most k passages, best first. `dropped` are those that would have been among them
    if screening had not removed them. `pool_ids` are the ids of all candidates, best first, before
    any were excluded or dropped.
    """

    found: tuple[Found, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    pool_ids: tuple[str, ...] = ()


class Retriever(Protocol):
    """Finds passages for questions."""

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """The k best passages for the queries together, without those whose ids are in `exclude`."""


_WIDER = (4, 12)
"""The factor by which more passages than wanted are searched, first and, if too few remain, once more."""


@dataclass(frozen=True, kw_only=True)
class LimitedRetriever:
    """A `Retriever` limited to documents by id: it searches further, up to the pool's size, to replace others."""

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
            dropped += [gone for gone in retrieval.dropped if not gone.doc_id or gone.doc_id in self.documents]
            exclude = exclude.union(found.passage.id for found in retrieval.found)
            if len(kept) >= k or not retrieval.found:
                break
        return Retrieval(found=tuple(kept[:k]), dropped=tuple(dict.fromkeys(dropped)), pool_ids=retrieval.pool_ids)


def limited(retriever: Retriever, documents: frozenset[str]) -> Retriever:
    """The retriever over these documents alone; over all if there are none."""
    if not documents:
        return retriever
    if (limited_to := getattr(retriever, "limited_to", None)) is not None:
        narrowed: Retriever = limited_to(documents)
        return narrowed
    return LimitedRetriever(retriever=retriever, documents=documents)

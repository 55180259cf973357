"""Hybrid retrieval: both indexes for every query, fused, screened, the best k."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .batching import AsyncEncoder
from .corpus import Corpus
from .fusion import blended_score, reciprocal_rank_fusion
from .guardrails import Dropped, screen
from .passage import Found


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """What a retrieval brought.

    `found` are at most k passages, best first. `dropped` are those that would have been among them,
    had they not been screened out. `pool_ids` are the ids of all fused candidates, best first, before
    anything was excluded or dropped.
    """

    found: tuple[Found, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    pool_ids: tuple[str, ...] = ()


class Retriever(Protocol):
    """Finds passages for questions."""

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """The k best passages for the queries together, none of whose ids is in `exclude`."""


@dataclass(frozen=True, kw_only=True)
class HybridRetriever:
    """Reciprocal rank fusion of `pool` candidates from each index and query, with the constant `rrf_k`."""

    corpus: Corpus
    encoder: AsyncEncoder
    pool: int = 50
    rrf_k: int = 60

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`. Blank and repeated queries count for nothing; `score` is the fused one."""
        asked = [query for query in dict.fromkeys(queries) if query.strip()]
        if not asked or k < 1:
            return Retrieval()
        dense, lexical = await asyncio.gather(self._dense(asked), self._lexical(asked))
        fused = reciprocal_rank_fusion([*dense, *lexical], self.rrf_k)
        fresh = [found for found in fused if found.passage.id not in exclude]
        kept, dropped = _best_clean(fresh, k)
        return Retrieval(found=kept, dropped=dropped, pool_ids=tuple(found.passage.id for found in fused))

    async def _dense(self, queries: Sequence[str]) -> list[list[Found]]:
        vectors = await self.encoder.queries(queries)
        return await asyncio.gather(*(self.corpus.dense.search(vector, self.pool) for vector in vectors))

    async def _lexical(self, queries: Sequence[str]) -> list[list[Found]]:
        return await asyncio.gather(*(self.corpus.lexical.search(query, self.pool) for query in queries))


def confidence(found: Found) -> float:
    """How well the passage fits by its own scores, in 0..1, whatever the fusion: see `blended_score`.

    A passage that only one side returned is rated by that side alone, hence too low rather than too high.
    """
    return blended_score(found.dense, found.lexical)


def _best_clean(ranked: Sequence[Found], k: int) -> tuple[tuple[Found, ...], tuple[Dropped, ...]]:
    """The first k that pass the guardrails, and what failed on the way: the next ones move up."""
    kept: tuple[Found, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    position = 0
    while len(kept) < k and position < len(ranked):
        screened = screen(ranked[position : position + k - len(kept)], drop=True)
        position += k - len(kept)
        kept, dropped = kept + screened.kept, dropped + screened.dropped
    return kept, dropped

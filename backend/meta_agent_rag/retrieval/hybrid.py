"""Hybrid retrieval: both indexes for every query, fused, linked across hops, screened, cut to the best k."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ..errors import MetaRagError, SearchDownError
from .batching import AsyncEncoder
from .corpus.corpus import Corpus
from .fusion import best_of, blend, blended_score, reciprocal_rank_fusion
from .links import expand_links
from .passage import Found
from .reranker import Reranker
from .screening import Dropped, screen
from .vectors import FloatVector

MOST_LISTED = 10_000
"""Passages that a search is kept to by their ids; of more, a wider search is filtered."""
_WIDER = 10


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


@dataclass(frozen=True, kw_only=True)
class HybridRetriever:
    """Retrieves from a corpus: for each query, `pool` candidates from each index, fused.

    `fusion` is reciprocal rank fusion with the constant `rrf_k`, or the weighted blend, in which a
    passage below `blend_floor` counts as irrelevant unless a better one links to it. With
    `links`, the fused candidates are extended and ordered across hops; a reranker decides last.

    With `on_fault`, a search survives the failure or the timeout (`side_seconds`) of one index: it is
    answered by the other one, and `on_fault` receives the side (`dense`, `lexical`) and its error. With
    `documents`, only passages of the documents with these ids are found. With
    `screening`, passages that read like orders to a model are dropped.
    """

    corpus: Corpus
    encoder: AsyncEncoder
    pool: int = 50
    rrf_k: int = 60
    fusion: Literal["rrf", "blend"] = "rrf"
    blend_floor: float = 0.0
    links: bool = True
    reranker: Reranker | None = None
    side_seconds: float | None = None
    on_fault: Callable[[str, Exception], None] | None = None
    documents: frozenset[str] = frozenset()
    screening: bool = True

    def limited_to(self, documents: frozenset[str]) -> "HybridRetriever":
        """This retriever, over the documents with these ids alone."""
        return replace(self, documents=documents)

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`. Blank and repeated queries are ignored.

        `score` is that of the last step that ordered the result: fusion, links, or reranker; with
        several queries, that of `best_of`.
        """
        asked = [query for query in dict.fromkeys(queries) if query.strip()]
        if not asked or k < 1:
            return Retrieval()
        vectors = await self.encoder.queries(asked)
        among = self.corpus.catalogue.ids_of(self.documents) if self.documents else None
        rankings = await asyncio.gather(
            *(self.candidates(query, vector, among) for query, vector in zip(asked, vectors, strict=True))
        )
        ranked = rankings[0] if len(rankings) == 1 else best_of(rankings, self.rrf_k)
        fresh = [found for found in ranked if found.passage.id not in exclude]
        floor = self.blend_floor if self.fusion == "blend" else None
        kept, dropped = _best_clean(fresh, k, floor, drop=self.screening)
        return Retrieval(found=kept, dropped=dropped, pool_ids=tuple(found.passage.id for found in ranked))

    async def candidates(self, query: str, vector: FloatVector, among: frozenset[str] | None = None) -> list[Found]:
        """All candidates for one query, best first, before exclusion and screening.

        With `among`, only passages with these ids.
        """
        listed = among if among is None or len(among) <= MOST_LISTED else None
        pool = self.pool if listed is among else _WIDER * self.pool
        sides = await self._sides(
            {
                "dense": self.corpus.dense.search(vector, pool, among=listed),
                "lexical": self.corpus.lexical.search(query, pool, among=listed),
            }
        )
        ranked = reciprocal_rank_fusion(sides, self.rrf_k) if self.fusion == "rrf" else blend(sides)
        if self.links:
            ranked = expand_links(query, vector, ranked, self.corpus)
        if among is not None:  # links lead to other documents too
            ranked = [found for found in ranked if found.passage.id in among]
        return ranked if self.reranker is None else await self._reranked(self.reranker, query, ranked)

    async def _sides(self, searches: Mapping[str, Awaitable[list[Found]]]) -> list[list[Found]]:
        """The results of each index. Raises an index's error, or, with `on_fault`, `SearchDownError` if both fail."""
        if self.on_fault is None:
            return await asyncio.gather(*searches.values())
        outcomes = await asyncio.gather(*(self._in_time(search) for search in searches.values()))
        for side, outcome in zip(searches, outcomes, strict=True):
            if isinstance(outcome, Exception):
                self.on_fault(side, outcome)
        found = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
        if not found:
            raise SearchDownError(f"Neither index of {self.corpus.manifest.name!r} responds; check their servers.")
        return found

    async def _in_time(self, search: Awaitable[list[Found]]) -> list[Found] | Exception:
        try:
            async with asyncio.timeout(self.side_seconds):
                return await search
        except (MetaRagError, TimeoutError) as fault:
            return fault

    async def _reranked(self, reranker: Reranker, query: str, ranked: Sequence[Found]) -> list[Found]:
        """The first `pool` candidates in the reranker's order, followed by the others."""
        first, others = ranked[: self.pool], ranked[self.pool :]
        scores = await reranker.rerank(query, [found.passage for found in first])
        scored = [replace(found, score=score) for found, score in zip(first, scores, strict=True)]
        least = min(scores, default=0.0)
        behind = [replace(found, score=least - place) for place, found in enumerate(others, start=1)]
        return sorted(scored, key=lambda found: (-found.score, found.passage.id)) + behind


def confidence(found: Found) -> float:
    """The relevance of a passage by its own scores, 0..1, independent of the fusion: see `blended_score`.

    A passage that only one side returned is rated by that side alone, i.e. too low rather than too high.
    """
    return blended_score(found.dense, found.lexical)


def _best_clean(
    ranked: Sequence[Found], k: int, floor: float | None, *, drop: bool
) -> tuple[tuple[Found, ...], tuple[Dropped, ...]]:
    """The first k that pass the screening and the floor, and those that failed; later ones move up."""
    relevant = {found.passage.id for found in ranked if floor is None or confidence(found) >= floor}
    kept: list[Found] = []
    dropped: list[Dropped] = []
    for found in ranked:
        if len(kept) == k:
            break
        if found.passage.id not in relevant and found.via not in relevant:
            if len(dropped) < k:
                reason = f"unable to find relevant content: {confidence(found):.2f} is below the floor of {floor:.2f}"
                dropped.append(Dropped(passage_id=found.passage.id, reason=reason, doc_id=found.passage.doc_id))
            continue
        screened = screen([found], drop=drop)
        kept.extend(screened.kept)
        dropped.extend(screened.dropped)
    return tuple(kept), tuple(dropped)

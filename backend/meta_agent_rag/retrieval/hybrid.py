"""Hybrid retrieval: both indexes for every query, fused, linked across hops, screened, cut to the best k."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import CorpusError, MetaRagError
from .batching import AsyncEncoder
from .corpus.catalogue import Catalogue
from .corpus.corpus import Corpus
from .fusion import best_of, blend, blended_score, reciprocal_rank_fusion
from .links import expand_links
from .passage import Found
from .retriever import Retrieval, Retriever
from .screening import Dropped, screen
from .vectors import FloatVector

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever

__all__ = ["HybridRetriever", "Retrieval", "Retriever", "confidence"]

_MOST_PLACED = 50
"""The most passages that a place named in a question puts first."""
_PAGE = re.compile(r"\b(?:pages?|pp?\.)\s*(\d{1,5})\b", re.IGNORECASE)
_HEADING = re.compile(
    r"\b(?:(chapter|part|appendix|annex)\s+([\dA-Z][\d.]*)|section\s+(\d+(?:\.\d+)*))\b", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class HybridRetriever:
    """Retrieves from a corpus: for each query, `pool` candidates from each index, fused.

    `fusion` is reciprocal rank fusion with the constant `rrf_k`, or the weighted blend, in which a
    passage below `blend_floor` counts as irrelevant unless a better one links to it. With
    `links`, the fused candidates are extended and ordered across hops. Passages on a page
    or under a heading that the question names come first.

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
    side_seconds: float | None = None
    on_fault: Callable[[str, Exception], None] | None = None
    documents: frozenset[str] = frozenset()
    screening: bool = True

    def limited_to(self, documents: frozenset[str]) -> "HybridRetriever":
        """This retriever, over the documents with these ids alone."""
        return replace(self, documents=documents)

    def as_langchain(self, k: int = 5) -> "BaseRetriever":
        """This retriever as LangChain's: `invoke(question)` gives the k best passages as Documents."""
        from .langchain import CorpusRetriever

        return CorpusRetriever(retriever=self, k=k)

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`. Blank and repeated queries are ignored.

        `score` is that of the last step that ordered the result: fusion or links; with
        several queries, that of `best_of`.
        """
        asked = [query for query in dict.fromkeys(queries) if query.strip()]
        if not asked or k < 1:
            return Retrieval()
        vectors = await self.encoder.queries(asked)
        rankings = await asyncio.gather(*map(self.candidates, asked, vectors))
        ranked = rankings[0] if len(rankings) == 1 else best_of(rankings, self.rrf_k)
        fresh = [found for found in ranked if found.passage.id not in exclude]
        floor = self.blend_floor if self.fusion == "blend" else None
        kept, dropped = _best_clean(fresh, k, floor, drop=self.screening)
        return Retrieval(found=kept, dropped=dropped, pool_ids=tuple(found.passage.id for found in ranked))

    async def candidates(self, query: str, vector: FloatVector) -> list[Found]:
        """All candidates for one query, best first, before exclusion and screening."""
        view = await self.corpus.view()
        among = view.catalogue.rows_of(self.documents) if self.documents else None
        dense = view.nearest(vector, self.pool, among=among)
        lexical = view.matching(query, self.pool, among=among)
        sides = await self._sides({"dense": dense, "lexical": lexical})
        ranked = reciprocal_rank_fusion(sides, self.rrf_k) if self.fusion == "rrf" else blend(sides)
        if self.links:
            ranked = expand_links(query, vector, ranked, view.catalogue)
        if self.documents:  # links lead to other documents too
            owners = view.catalogue.owners([found.passage.id for found in ranked])
            ranked = [found for found in ranked if owners.get(found.passage.id) in self.documents]
        return _placed(query, vector, ranked, view.catalogue, sorted(self.documents or ()))

    async def _sides(self, searches: Mapping[str, Awaitable[list[Found]]]) -> list[list[Found]]:
        """The results of each index. Raises an index's error, or, with `on_fault`, `CorpusError` if both fail."""
        timed = [asyncio.wait_for(search, self.side_seconds) for search in searches.values()]
        outcomes = await asyncio.gather(*timed, return_exceptions=True)
        found = []
        for side, outcome in zip(searches, outcomes, strict=True):
            if not isinstance(outcome, BaseException):
                found.append(outcome)
            elif self.on_fault is not None and isinstance(outcome, MetaRagError | TimeoutError):
                self.on_fault(side, outcome)
            else:
                raise outcome
        if not found:
            raise CorpusError(f"Neither index of {self.corpus.manifest.name!r} responds; check their servers.")
        return found


def confidence(found: Found) -> float:
    """The relevance of a passage by its own scores, 0..1, independent of the fusion: see `blended_score`.

    A passage that only one side returned is rated by that side alone, i.e. too low rather than too high.
    """
    return blended_score(found.dense, found.lexical)


def _placed(
    query: str, vector: FloatVector, ranked: Sequence[Found], catalogue: Catalogue, documents: Sequence[str]
) -> list[Found]:
    """The candidates, first those at a place that the question names ("page 12", "section 2.4", "chapter 3").

    They are of these documents, or else of those of the candidates, in the order of documents and passages. Their score
    is just above the best of the others.
    """
    pages, headings = _PAGE.findall(query), _HEADING.findall(query)
    if not pages and not headings:
        return list(ranked)
    owners = {} if documents else catalogue.owners([found.passage.id for found in ranked])
    about = (owners[found.passage.id] for found in ranked if found.passage.id in owners)
    among, passages = documents or list(dict.fromkeys(about)), []
    for page in pages:
        passages += catalogue.passages_on(int(page), among)
    for kind, label, number in headings:
        passages += catalogue.passages_under(f"{kind} {label.rstrip('.')}" if kind else number, among)
    placed = list({passage.id: passage for passage in passages}.values())[:_MOST_PLACED]
    if not placed:
        return list(ranked)
    known = {found.passage.id: found for found in ranked}
    rows = catalogue.vectors([passage.id for passage in placed if passage.id not in known])
    top = max((found.score for found in ranked), default=0.0)
    first = []
    for place, passage in enumerate(placed):
        score = top + 1.0 - place / len(placed)
        cosine = float(np.dot(rows[passage.id], vector)) if passage.id in rows else None
        found = known.get(passage.id) or Found(passage=passage, score=score, dense=cosine)
        first.append(replace(found, score=score, via=None))
    ids = {found.passage.id for found in first}
    return [*first, *(found for found in ranked if found.passage.id not in ids)]


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

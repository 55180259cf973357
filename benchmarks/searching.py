"""Retrieval over the paragraphs that come with a question, for methods that search where evidence is supplied."""

from collections.abc import Sequence
from dataclasses import dataclass

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.guardrails import screen
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Found, Passage


@dataclass(frozen=True, kw_only=True)
class SuppliedSearch:
    """A `Retriever` over a handful of passages: cosine of query and passage, title included, best of all queries.

    What is supplied is marked where it is suspect, and never dropped.
    """

    passages: tuple[Passage, ...]
    encoder: AsyncEncoder

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        asked = [query for query in dict.fromkeys(queries) if query.strip()]
        left = [passage for passage in self.passages if passage.id not in exclude]
        if not asked or not left or k < 1:
            return Retrieval()
        vectors = await self.encoder.passages([f"{passage.title}\n{passage.text}" for passage in left])
        best = (vectors @ (await self.encoder.queries(asked)).T).max(axis=1)
        ranked = sorted(
            (Found(passage=passage, score=float(score)) for passage, score in zip(left, best, strict=True)),
            key=lambda found: -found.score,
        )
        return Retrieval(
            found=screen(ranked[:k], drop=False).kept, pool_ids=tuple(found.passage.id for found in ranked)
        )

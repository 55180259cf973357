"""Retrieval over a few passages supplied by the caller: no index, but the same order across hops."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..text.names import content_words, mentioned, name_keys, spaced
from .batching import AsyncEncoder
from .fusion import best_of
from .hybrid import Retrieval
from .links import Link, Neighbourhood, ranked
from .passage import Found, Passage
from .screening import screen
from .vectors import FloatVector

_RRF_K = 60


@dataclass(frozen=True, kw_only=True)
class SuppliedRetriever:
    """A `Retriever` over supplied passages, ordered by the sum described in `links`.

    BM25 is replaced by the share of the query's words, weighted by their rarity among the passages.
    Suspect passages are marked, and never dropped here. Passages are encoded once.
    """

    passages: tuple[Passage, ...]
    encoder: AsyncEncoder
    _encoded: list[FloatVector] = field(default_factory=list, compare=False, repr=False)
    _encoding: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False, repr=False)

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`. `score` is the sum, in 0..6; with several queries, that of `best_of`."""
        asked = [query for query in dict.fromkeys(queries) if query.strip()]
        if not asked or not self.passages or k < 1:
            return Retrieval()
        vectors = await self.encoder.queries(asked)
        known = await self._vectors()
        rankings = [self._ranked(query, vector, known) for query, vector in zip(asked, vectors, strict=True)]
        best = rankings[0] if len(rankings) == 1 else best_of(rankings, _RRF_K)
        fresh = [found for found in best if found.passage.id not in exclude]
        return Retrieval(found=screen(fresh[:k], drop=False).kept, pool_ids=tuple(found.passage.id for found in best))

    async def index(self) -> None:
        """Encode the passages now, so that the first search does not wait for it."""
        await self._vectors()

    async def _vectors(self) -> list[FloatVector]:
        async with self._encoding:
            if self.passages and not self._encoded:
                self._encoded.extend(await self.encoder.passages([one.searchable() for one in self.passages]))
        return self._encoded

    def _ranked(self, query: str, vector: FloatVector, known: Sequence[FloatVector]) -> list[Found]:
        weights = self._weights(query)
        candidates = [
            Found(
                passage=passage,
                score=0.0,
                dense=round(float(own @ vector), 5),
                lexical=sum(weight for word, weight in weights.items() if word in spaced(passage.searchable())),
            )
            for passage, own in zip(self.passages, known, strict=True)
        ]
        return ranked(query, candidates, _neighbourhood(query, self.passages))

    def _weights(self, query: str) -> dict[str, float]:
        """Each content word of the query, between blanks, with the logarithm of its inverse document frequency."""
        texts = [spaced(one.searchable()) for one in self.passages]
        holding = {f" {word} ": sum(f" {word} " in text for text in texts) for word in content_words(query)}
        return {word: math.log(1.0 + len(texts) / (1.0 + count)) for word, count in holding.items()}


def _neighbourhood(query: str, passages: Sequence[Passage]) -> Neighbourhood:
    """The passages that the query names, and the passages that mention each other by title."""
    bearers: dict[str, list[Passage]] = {}
    for passage in passages:
        for name in name_keys(passage.title):
            bearers.setdefault(name.key, []).append(passage)
    asked, *found = mentioned([query, *(one.text for one in passages)], lambda keys: bearers.keys() & keys)
    links = [
        Link(source.id, target.id, len({one.doc_id for one in bearers[name]}))
        for source, names in zip(passages, found, strict=True)
        for name in names
        for target in bearers.get(name, ())
        if target.doc_id != source.doc_id
    ]
    anchors = frozenset(one.id for name in asked for one in bearers.get(name, ()))
    return Neighbourhood(anchors=anchors, links=tuple(links), passages={one.id: one for one in passages})

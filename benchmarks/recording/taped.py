"""A retriever and an encoder that record their results, or play recorded ones back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from meta_agent_rag.errors import MetaRagError
from meta_agent_rag.retrieval.encoders.encoder import Encoder
from meta_agent_rag.retrieval.hybrid import Retrieval, Retriever
from meta_agent_rag.retrieval.vectors import FloatMatrix, FloatVector


@dataclass(frozen=True, kw_only=True)
class Search:
    """The queries of a search, with its question and row of the table; equal searches find the same."""

    question_id: str
    method: str
    queries: tuple[str, ...]
    k: int
    exclude: tuple[str, ...]


class SearchTape(Protocol):
    """Records searches, or plays them back."""

    def play_search(self, search: Search) -> Retrieval | None:
        """The recorded result of the search; `None` if nothing is played back. Raises the recorded error."""

    def keep_search(self, search: Search, outcome: Retrieval | MetaRagError) -> None:
        """Record one search: what it found, or the error that it raised."""


class VectorTape(Protocol):
    """Records vectors, or plays them back."""

    def play_vector(self, encoder: str, kind: str, text: str) -> FloatVector | None:
        """The text's vector by the encoder with that name; `None` if nothing is played back."""

    def keep_vector(self, encoder: str, kind: str, text: str, vector: FloatVector) -> None:
        """Record one vector that the encoder with that name computed."""


@dataclass(frozen=True, kw_only=True)
class TapedRetriever:
    """A `Retriever` for one question and row, through a tape."""

    inner: Retriever
    tape: SearchTape
    question_id: str
    method: str

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        search = Search(
            question_id=self.question_id,
            method=self.method,
            queries=tuple(queries),
            k=k,
            exclude=tuple(sorted(exclude)),
        )
        played = self.tape.play_search(search)
        if played is not None:
            return played
        try:
            found = await self.inner.retrieve(queries, k=k, exclude=exclude)
        except MetaRagError as error:
            self.tape.keep_search(search, error)
            raise
        self.tape.keep_search(search, found)
        return found


@dataclass(frozen=True, kw_only=True)
class TapedEncoder:
    """An `Encoder` through a tape; without `inner` it only plays back."""

    name: str
    tape: VectorTape
    inner: Encoder | None = None

    @property
    def dimension(self) -> int:
        """Length of the vectors; 0 if they are only played back."""
        return self.inner.dimension if self.inner is not None else 0

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """See `Encoder`."""
        return self._encode("query", texts)

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """See `Encoder`."""
        return self._encode("passage", texts)

    def _encode(self, kind: str, texts: Sequence[str]) -> FloatMatrix:
        if self.inner is None:
            played = [self.tape.play_vector(self.name, kind, text) for text in texts]
            return np.stack([vector for vector in played if vector is not None])
        encode = self.inner.encode_queries if kind == "query" else self.inner.encode_passages
        vectors = encode(texts)
        for text, vector in zip(texts, vectors, strict=True):
            self.tape.keep_vector(self.name, kind, text, vector)
        return vectors

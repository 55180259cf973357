"""A retriever and an encoder that record their results, or play recorded ones back, and stubs for a replay."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meta_agent_rag.errors import MetaRagError
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.retrieval.encoders import Encoder
from meta_agent_rag.retrieval.hybrid import Retrieval, Retriever
from meta_agent_rag.retrieval.vectors import FloatMatrix
from meta_agent_rag.testing import ScriptedModel

from .format import Search
from .recorder import Recorder
from .recording import Recording, ReplayError


@dataclass(frozen=True, kw_only=True)
class TapedRetriever:
    """A `Retriever` for one question and row: it searches and records, or plays the record back."""

    inner: Retriever
    tape: Recorder | Recording
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
        if isinstance(self.tape, Recording):
            return self.tape.play_search(search)
        try:
            found = await self.inner.retrieve(queries, k=k, exclude=exclude)
        except MetaRagError as error:
            self.tape.keep_search(search, error)
            raise
        self.tape.keep_search(search, found)
        return found


@dataclass(frozen=True, kw_only=True)
class TapedEncoder:
    """An `Encoder` that encodes and records, or plays the record back."""

    name: str
    tape: Recorder | Recording
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
        if isinstance(self.tape, Recording):
            return np.stack([self.tape.play_vector(self.name, kind, text) for text in texts])
        assert self.inner is not None
        vectors = (self.inner.encode_queries if kind == "query" else self.inner.encode_passages)(texts)
        for text, vector in zip(texts, vectors, strict=True):
            self.tape.keep_vector(self.name, kind, text, vector)
        return vectors


class NoModel(ScriptedModel):
    """The chat model of a replay, which serves nothing: the record in front of it answers."""

    async def complete(self, request: Request) -> Reply:
        """Raise: a replay makes no call."""
        raise ReplayError(f"A replay makes no call, but stage {request.stage!r} asked for one; record the run again.")


class NoSearch:
    """The corpus of a replay, which finds nothing; the record in front of it answers."""

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """Raise: a replay searches nothing."""
        raise ReplayError(f"A replay makes no search, but was asked for {queries!r}; record the run again.")

"""Cosine search over vectors, on disk, with the embedded Qdrant (qdrant-edge-py).

Every search is exact: a scan of all vectors (0.3 ms at 5,000 passages, 4.4 ms at 50,000), so that a
figure can be repeated. The library holds the interpreter's lock while it works, hence small batches;
whoever outgrows that takes a server.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from ...errors import CorpusError
from ..passage import Found, Passage
from ..vectors import FloatMatrix, FloatVector
from .protocols import DenseBackend
from .rows import Row, best_rows, from_record, to_record

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

_NAMESPACE = UUID("6f1d0c86-3f55-5d0e-9a53-2d7c0f0f4a11")
_BATCH = 256
_FILTERED_FIELDS = ("doc_id",)
"""Payload fields with an index; Qdrant Edge wants it created again after every open."""


class QdrantEdgeStore:
    """A `DenseStore`; get one from `open_store`."""

    def __init__(self, folder: Path, dimension: int) -> None:
        import qdrant_edge as edge

        self._edge = edge
        self._folder = folder
        self._dimension = dimension
        vectors = edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine)
        # With a configuration, `load` also creates, and mends what a kill during creation left.
        self._shard: EdgeShard = edge.EdgeShard.load(str(folder), edge.EdgeConfig(vectors=vectors))
        for field in _FILTERED_FIELDS:
            keyword = edge.PayloadSchemaType.Keyword
            self._shard.update(edge.UpdateOperation.create_field_index(field, keyword))

    async def add(self, passages: Sequence[Passage], vectors: FloatMatrix) -> None:
        """Keep the passages, a batch at a time; ids are derived from passage ids, so a repeat replaces."""
        expected = (len(passages), self._dimension)
        if vectors.shape != expected:
            raise ValueError(f"vectors have the shape {vectors.shape}; {expected} is needed")
        for start in range(0, len(passages), _BATCH):
            part = slice(start, start + _BATCH)
            await asyncio.to_thread(self._upsert, passages[part], vectors[part])

    async def remove(self, ids: Sequence[str]) -> None:
        """Forget these passages."""
        if ids:
            await asyncio.to_thread(self._delete, ids)

    async def search(self, vector: FloatVector, k: int) -> list[Found]:
        """The k nearest passages, by an exact scan."""
        if vector.shape != (self._dimension,):
            raise ValueError(f"the vector has the shape {vector.shape}; ({self._dimension},) is needed")
        rows = await asyncio.to_thread(self._search, vector.tolist(), k)
        return [Found(passage=from_record(row.record), score=row.score, dense=row.score) for row in rows]

    def close(self) -> None:
        """Write everything to disk and let go of the lock."""
        self._shard.close()

    def _upsert(self, passages: Sequence[Passage], vectors: FloatMatrix) -> None:
        latest = {passage.id: (passage, vector) for passage, vector in zip(passages, vectors, strict=True)}
        points = [self._edge.Point(_point_id(id_), vector.tolist(), _payload(p)) for id_, (p, vector) in latest.items()]
        with _Translated(self._folder):
            self._shard.update(self._edge.UpdateOperation.upsert_points(points))

    def _delete(self, ids: Sequence[str]) -> None:
        points = [_point_id(passage_id) for passage_id in dict.fromkeys(ids)]
        with _Translated(self._folder):
            self._shard.update(self._edge.UpdateOperation.delete_points(list(points)))

    def _search(self, vector: list[float], k: int) -> list[Row]:
        query, exact = self._edge.Query.Nearest(vector), self._edge.SearchParams(exact=True)

        def fetch(limit: int) -> list[Row]:
            request = self._edge.QueryRequest(limit, query=query, with_payload=True, params=exact)
            with _Translated(self._folder):
                points = self._shard.query(request)
            payloads = [(point.score, point.payload or {}) for point in points]
            return [Row(min(1.0, max(-1.0, score)), payload["id"], payload["passage"]) for score, payload in payloads]

        return best_rows(fetch, k)


class _Translated:
    """Turns the library's faults, which are of the bare class `Exception` and no other, into `CorpusError`."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not Exception:
            return
        if "WouldBlock" in str(error):
            raise CorpusError(f"The dense index {self._folder!r} is open elsewhere; close it there first.") from error
        if "expected vector size" in str(error):
            raise CorpusError(
                f"The dense index {self._folder!r} holds vectors of another length; "
                "open it with the encoder that it was built with, or build it again."
            ) from error
        raise CorpusError(f"The dense index {self._folder!r} fails; build it again. ({error})") from error


@asynccontextmanager
async def open_store(folder: Path, dimension: int) -> AsyncIterator[QdrantEdgeStore]:
    """Create or reopen the index in `folder`, and close it afterwards.

    Raises `CorpusError` if it is open elsewhere, cannot be read, or has another dimension.
    """
    store = await asyncio.to_thread(_open, folder, dimension)
    try:
        yield store
    finally:
        await asyncio.to_thread(store.close)


DENSE = DenseBackend(name="qdrant-edge", open=open_store)


def _open(folder: Path, dimension: int) -> QdrantEdgeStore:
    folder.mkdir(parents=True, exist_ok=True)
    with _Translated(folder):
        return QdrantEdgeStore(folder, dimension)


def _point_id(passage_id: str) -> UUID:
    """The same id for the same passage, so that a batch sent twice after a kill is there once."""
    return uuid5(_NAMESPACE, passage_id)


def _payload(passage: Passage) -> dict[str, str]:
    return {"id": passage.id, "doc_id": passage.doc_id, "passage": to_record(passage)}

"""Cosine search over vectors, on disk, with the embedded Qdrant (qdrant-edge-py).

A search scans codes of two bits a dimension and computes the cosines of the best of them, eight times as many as
wanted, from the vectors themselves. Over 35,063 passages the best 50 are those of an exact scan for 557 of 580
questions (with codes of four bits: 558), and the best 10 for all. Over a million vectors a search takes 25 ms (with
codes of four bits: 38 ms). The library holds the interpreter's lock while it works, so batches are small; larger
corpora need a server.
Updates are made atomic by `versions`.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...errors import CorpusError
from ..passage import Found, Passage
from ..vectors import FloatMatrix, FloatVector
from .damage import is_panic, require_whole, unreadable
from .ownership import claim, dropper, settle
from .points import MARKER, check_matrix, check_vector, payload_of, point_id, row_of
from .protocols import DenseBackend, StorePlace
from .rows import Row, best_rows, from_record, in_parts, to_key
from .seal import break_seal, seal
from .versions import Hidden, Marker, Versions, marker_from, marker_payload

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, Filter, UpdateOperation

_NAME = "qdrant-edge"
_VECTOR = "text"
_BATCH = 256
_OVERSAMPLING = 8.0
_PAGE = 1024


class _EdgePoints:
    """The engine's side of `Versions`; changes run in threads."""

    def __init__(self, folder: Path, dimension: int) -> None:
        import qdrant_edge as edge

        self.edge = edge
        self.folder = folder
        self._marker: Marker | None = None
        codes = edge.TurboQuantQuantizationConfig(always_ram=True, bits=edge.TurboQuantBitSize.Bits2)
        kept = edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine, quantization_config=codes)
        vectors = {_VECTOR: kept}
        # With a configuration, `load` also creates, and repairs the remains of a kill during creation.
        self.shard: EdgeShard = edge.EdgeShard.load(str(folder), edge.EdgeConfig(vectors=vectors))
        kinds = edge.PayloadSchemaType
        for field, kind in (
            ("id", kinds.Keyword),
            ("doc_id", kinds.Keyword),
            ("since", kinds.Integer),
            ("until", kinds.Integer),
        ):  # in a copy they exist, and this changes nothing
            self.shard.update(edge.UpdateOperation.create_field_index(field, kind))

    async def marker(self) -> Marker | None:
        with _Translated(self.folder):
            markers = self.shard.retrieve([MARKER], True, False)  # 20 microseconds: less than starting a thread
        return marker_from(markers[0].payload) if markers else None

    async def mark(self, marker: Marker) -> None:
        # A point without a vector, which no search can return.
        point = self.edge.Point(MARKER, {}, marker_payload(marker))
        try:
            await self._do(self.edge.UpdateOperation.upsert_points([point]))
        except BaseException:
            self._marker = None
            raise
        self._marker = marker

    async def write(self, passages: Sequence[Passage], vectors: FloatMatrix, since: int) -> None:
        for positions in in_parts(range(len(passages)), _BATCH):
            points = [
                self.edge.Point(
                    point_id(passages[at].id, since),
                    {_VECTOR: vectors[at].tolist()},
                    payload_of(passages[at], since),
                )
                for at in positions
            ]
            await self._do(self.edge.UpdateOperation.upsert_points(points))

    async def retire(self, ids: Sequence[str], until: int) -> None:
        for part in in_parts(ids, _BATCH):
            outdated = self.edge.Filter(must=[self._any_of(part)], must_not=[self._is("since", until)])
            await self._do(self.edge.UpdateOperation.set_payload_by_filter(outdated, {"until": until}))

    async def reinstate(self, until: int) -> None:
        outdated = self.edge.Filter(must=[self._is("until", until)])
        await self._do(self.edge.UpdateOperation.delete_payload_by_filter(outdated, ["until"]))

    async def erase(self, points: Hidden) -> None:
        selected = self.edge.Filter(must=[self._is(*points)])
        await self._do(self.edge.UpdateOperation.delete_points_by_filter(selected))

    def filter(self, hidden: Hidden | None, among: Collection[str] | None) -> "Filter | None":
        if hidden is None and among is None:
            return None
        return self.edge.Filter(
            must=None if among is None else [self._any_of(among)],
            must_not=None if hidden is None else [self._is(*hidden)],
        )

    def _any_of(self, ids: Collection[str]) -> Any:
        return self.edge.FieldCondition("id", match=self.edge.MatchAny([to_key(passage_id) for passage_id in ids]))

    def _is(self, field: str, value: int) -> Any:
        return self.edge.FieldCondition(field, match=self.edge.MatchValue(value))

    async def _do(self, operation: "UpdateOperation") -> None:
        with _Translated(self.folder):
            await _to_its_end(asyncio.to_thread(self.shard.update, operation))


class QdrantEdgeStore:
    """A `DenseStore`; get one from `open_store`."""

    def __init__(self, folder: Path, dimension: int) -> None:
        self._dimension = dimension
        self._points = _EdgePoints(folder, dimension)
        self._versions = Versions(self._points)

    async def update(self, passages: Sequence[Passage], vectors: FloatMatrix, *, removed: Sequence[str] = ()) -> None:
        """Delete and store in batches, made visible at once; searches continue meanwhile."""
        check_matrix(vectors, len(passages), self._dimension)
        await self._versions.update(passages, vectors, removed)

    async def search(self, vector: FloatVector, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        """The k nearest passages, by scanning all of them."""
        check_vector(vector, self._dimension)
        if among is not None and not among:
            return []

        async def search(hidden: Hidden | None) -> list[Row]:
            # In place: the library holds the interpreter's lock, so a thread would only add overhead.
            return self._search(vector.tolist(), k, self._points.filter(hidden, among))

        rows = await self._versions.reading(search)
        return [Found(passage=from_record(row.record), score=row.score, dense=row.score) for row in rows]

    async def scan(self) -> AsyncIterator[Passage]:
        """Every passage, in pages."""
        edge, wanted = self._points.edge, self._points.filter(await self._versions.hidden(), None)
        offset, more = None, True
        while more:
            page = edge.ScrollRequest(offset, _PAGE, wanted, with_payload=True, with_vector=False)
            with _Translated(self._points.folder):
                records, offset = await asyncio.to_thread(self._points.shard.scroll, page)
            more = offset is not None
            for payload in [record.payload or {} for record in records]:
                if "passage" in payload:
                    yield from_record(payload["passage"])

    def held(self) -> int:
        """The number of passages; for a store without concurrent updates."""
        edge = self._points.edge
        with _Translated(self._points.folder):
            markers = self._points.shard.retrieve([MARKER], False, False)
            return int(self._points.shard.count(edge.CountRequest(exact=True))) - len(markers)

    def close(self) -> None:
        """Write everything to disk and release the lock."""
        with _Translated(self._points.folder):
            self._points.shard.close()

    def _search(self, vector: list[float], k: int, allowed: "Filter | None") -> list[Row]:
        edge = self._points.edge
        query = edge.Query.Nearest(vector, _VECTOR)
        rescored = edge.QuantizationSearchParams(ignore=False, rescore=True, oversampling=_OVERSAMPLING)
        params = edge.SearchParams(exact=False, quantization=rescored)

        def fetch(limit: int) -> list[Row]:
            request = edge.QueryRequest(limit, query=query, with_payload=True, filter=allowed, params=params)
            with _Translated(self._points.folder):
                points = self._points.shard.query(request)
            try:
                # if flags were lost, the marker appears as if it had a vector
                return [row_of(point.score, point.payload or {}) for point in points if point.id != MARKER]
            except KeyError as error:
                raise unreadable(self._points.folder, f"a passage has no {error.args[0]!r}") from error

        return best_rows(fetch, k)


async def _to_its_end(change: Coroutine[Any, Any, None]) -> None:
    """Await a change that must not keep running in its thread after a cancellation, parallel to what comes next."""
    task = asyncio.create_task(change)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class _Translated:
    """Translates the library's errors, which are plain `Exception`s or panics, into `CorpusError`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not Exception and not is_panic(error):
            return
        folder = str(self._folder)
        if "WouldBlock" in str(error):
            raise CorpusError(f"The dense index {folder!r} is open elsewhere; close it there first.") from error
        if "expected vector size" in str(error):
            raise CorpusError(
                f"The dense index {folder!r} contains vectors of a different length; "
                "open it with the encoder it was built with, or rebuild it."
            ) from error
        raise unreadable(self._folder, error) from error


@asynccontextmanager
async def open_store(place: StorePlace, dimension: int) -> AsyncIterator[QdrantEdgeStore]:
    """Create or reopen the index in the place's folder, and close it afterwards.

    Raises `CorpusError` if it is open elsewhere, has another dimension, or was not created by this package,
    `DamagedIndexError` if it is unreadable or incomplete.
    """
    known = await asyncio.to_thread(break_seal, place.folder)
    store = await asyncio.to_thread(_open, place, dimension)
    try:
        yield store
    finally:
        await asyncio.to_thread(store.close)
        if not place.read_only:
            await asyncio.to_thread(seal, place.folder, known)


DENSE = DenseBackend(name=_NAME, open=open_store, drop=dropper(_NAME))


def _open(place: StorePlace, dimension: int) -> QdrantEdgeStore:
    claim(place.folder, _NAME)
    with _Translated(place.folder):
        store = QdrantEdgeStore(place.folder, dimension)
    try:
        require_whole(place, store.held())
    except BaseException:
        store.close()
        raise
    settle(place.folder, _NAME)
    return store

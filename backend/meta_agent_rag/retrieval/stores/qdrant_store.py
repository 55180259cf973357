"""Cosine search over vectors on a Qdrant server, through its async client.

A corpus is one collection with the named vector `text` and keyword indexes on `id` and `doc_id`.
Updates are made atomic by `versions`, also for searches of other processes, at the cost of a second,
small request per search. Searches use the server's HNSW graph, once it has built one, so
the last few of a long result may differ from those of an exact scan. A `compressed` collection keeps an int8 copy
of the vectors in memory and the vectors themselves on disk, from which the best are rescored.

If the port after the URL's speaks gRPC (6334 beside 6333, Qdrant's own convention), that is used:
vectors are then sent as binary floats, a third of the size of their JSON and cheaper to encode.
Otherwise, and if there is a proxy in front of the server, REST does the same.

Instead of a URL, a folder or `:memory:` opens the client's local mode, for trials and tests.
"""

import asyncio
import warnings
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import CorpusError, SettingsError
from ...extras import require
from ..passage import Found, Passage
from ..vectors import FloatMatrix, FloatVector
from .ownership import CREATED_BY
from .points import MARKER, check_matrix, check_vector, payload_of, point_id, row_of
from .protocols import DenseBackend, StorePlace
from .rows import Row, best_rows_async, from_record, in_parts, to_key
from .servers import BATCH_SECONDS, SEARCH_SECONDS, server_url, shown_url
from .versions import Hidden, Marker, Versions, marker_from, marker_payload

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient
    from qdrant_client.models import FieldCondition, Filter, SearchParams

_SETTING = "QDRANT_URL"
_VECTOR = "text"
_BATCH = 256
_OVERSAMPLING = 4.0
"""The factor by which more candidates than wanted are rescored if the collection is compressed."""
_PAGE = 1024
_PORT = 6333
_PROBE_SECONDS = 0.5
_KEYWORDS = ("id", "doc_id")
_INTEGERS = ("since", "until")


class _ServerPoints:
    """The server's side of `Versions`."""

    def __init__(self, client: "AsyncQdrantClient", place: StorePlace) -> None:
        from qdrant_client import models

        self.client = client
        self.place = place
        self.name = place.name
        self.models = models

    async def marker(self) -> Marker | None:
        markers = await self._do(self.client.retrieve(self.name, [str(MARKER)], with_payload=True))
        return marker_from(markers[0].payload) if markers else None

    async def mark(self, marker: Marker) -> None:
        # A point without a vector, which no search can return.
        point = self.models.PointStruct(id=str(MARKER), vector={}, payload=marker_payload(marker))
        await self._do(self.client.upsert(self.name, [point], wait=True))

    async def write(self, passages: Sequence[Passage], vectors: FloatMatrix, since: int) -> None:
        for positions in in_parts(range(len(passages)), _BATCH):
            points = [
                self.models.PointStruct(
                    id=str(point_id(passages[at].id, since)),
                    vector={_VECTOR: vectors[at].tolist()},
                    payload=payload_of(passages[at], since),
                )
                for at in positions
            ]
            await self._do(self.client.upsert(self.name, points, wait=True, timeout=BATCH_SECONDS))

    async def retire(self, ids: Sequence[str], until: int) -> None:
        for part in in_parts(ids, _BATCH):
            outdated = self.models.Filter(must=[self._any_of(part)], must_not=[self._is("since", until)])
            await self._do(self.client.set_payload(self.name, {"until": until}, outdated, wait=True))

    async def reinstate(self, until: int) -> None:
        outdated = self.models.Filter(must=[self._is("until", until)])
        await self._do(self.client.delete_payload(self.name, ["until"], outdated, wait=True))

    async def erase(self, points: Hidden) -> None:
        selected = self.models.FilterSelector(filter=self.models.Filter(must=[self._is(*points)]))
        await self._do(self.client.delete(self.name, selected, wait=True))

    def filter(self, hidden: Hidden | None, among: Collection[str] | None) -> "Filter | None":
        if hidden is None and among is None:
            return None
        return self.models.Filter(
            must=None if among is None else [self._any_of(among)],
            must_not=None if hidden is None else [self._is(*hidden)],
        )

    def _any_of(self, ids: Collection[str]) -> "FieldCondition":
        wanted = self.models.MatchAny(any=[to_key(passage_id) for passage_id in ids])
        return self.models.FieldCondition(key="id", match=wanted)

    def _is(self, field: str, value: int) -> "FieldCondition":
        return self.models.FieldCondition(key=field, match=self.models.MatchValue(value=value))

    async def _do(self, request: Any) -> Any:
        with _translated(self.place):
            return await request


class QdrantStore:
    """A `DenseStore`; get one from `open_store`."""

    def __init__(self, client: "AsyncQdrantClient", place: StorePlace, dimension: int) -> None:
        self._dimension = dimension
        self._points = _ServerPoints(client, place)
        self._versions = Versions(self._points)

    async def update(self, passages: Sequence[Passage], vectors: FloatMatrix, *, removed: Sequence[str] = ()) -> None:
        """Delete and store in batches, each awaited until the server has applied it; made visible at once."""
        check_matrix(vectors, len(passages), self._dimension)
        await self._versions.update(passages, vectors, removed)

    async def search(self, vector: FloatVector, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        """The k nearest passages, by the server's graph."""
        check_vector(vector, self._dimension)
        if among is not None and not among:
            return []
        query = vector.tolist()

        async def search(hidden: Hidden | None) -> list[Row]:
            return await best_rows_async(partial(self._fetch, query, self._points.filter(hidden, among)), k)

        rows = await self._versions.reading(search)
        return [Found(passage=from_record(row.record), score=row.score, dense=row.score) for row in rows]

    async def scan(self) -> AsyncIterator[Passage]:
        """Every passage, in pages."""
        allowed = self._points.filter(await self._versions.hidden(), None)
        offset, more = None, True
        while more:
            with _translated(self._points.place):
                records, offset = await self._points.client.scroll(
                    self._points.name, allowed, limit=_PAGE, offset=offset, with_payload=["passage"]
                )
            more = offset is not None
            for payload in [record.payload or {} for record in records]:
                if "passage" in payload:
                    yield from_record(payload["passage"])

    async def _fetch(self, query: list[float], allowed: "Filter | None", limit: int) -> list[Row]:
        with _translated(self._points.place):
            response = await self._points.client.query_points(
                self._points.name,
                query,
                using=_VECTOR,
                query_filter=allowed,
                search_params=self._scored_again(),
                limit=limit,
                with_payload=True,
            )
        return [row_of(point.score, point.payload or {}) for point in response.points]

    def _scored_again(self) -> "SearchParams | None":
        """Make a server rescore the candidates from their vectors if it compresses them; local mode never does."""
        if "://" not in (self._points.place.url or ""):
            return None
        from qdrant_client import models

        again = models.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING)
        return models.SearchParams(quantization=again)


@asynccontextmanager
async def open_store(place: StorePlace, dimension: int) -> AsyncIterator[QdrantStore]:
    """Create or reopen the place's collection, and close the connection afterwards.

    Raises `SettingsError` for a missing or malformed URL or a rejected key, `CorpusError` if the server
    is unreachable, or the collection has another dimension or was not created by this package.
    """
    async with _connected(place) as client:
        with _translated(place):
            existing = await _existing_dimension(client, place)
            if existing is None:
                await _create(client, place, dimension)
            elif existing != dimension:
                raise CorpusError(
                    f"The collection {place.name!r} contains vectors of a different length; "
                    "open it with the encoder it was built with, or rebuild it."
                )
            await _create_indexes(client, place)
        yield QdrantStore(client, place, dimension)


async def drop_store(place: StorePlace) -> None:
    """Remove the place's collection; see `DenseBackend`."""
    async with _connected(place) as client:
        with _translated(place):
            if await _existing_dimension(client, place) is not None:
                await client.delete_collection(place.name)


DENSE = DenseBackend(name="qdrant", open=open_store, drop=drop_store, served=True)


async def _existing_dimension(client: "AsyncQdrantClient", place: StorePlace) -> int | None:
    """The length of the collection's vectors, if there is one; `CorpusError` unless this package made it."""
    if not await client.collection_exists(place.name):
        return None
    info = await client.get_collection(place.name)
    vectors = info.config.params.vectors
    ours = (info.config.metadata or {}).get("created_by") == CREATED_BY
    if not ours or not isinstance(vectors, dict) or _VECTOR not in vectors:
        raise CorpusError(
            f"The collection {place.name!r} on the Qdrant server was not made by this package, or before version 1.16 "
            "of the server, and is left unchanged: choose another corpus name, or remove it there yourself."
        )
    return vectors[_VECTOR].size


async def _create(client: "AsyncQdrantClient", place: StorePlace, dimension: int) -> None:
    from qdrant_client import models

    codes = models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
    )
    vectors = models.VectorParams(
        size=dimension,
        distance=models.Distance.COSINE,
        on_disk=place.compressed or None,
        quantization_config=codes if place.compressed else None,
    )
    await client.create_collection(place.name, vectors_config={_VECTOR: vectors}, metadata={"created_by": CREATED_BY})


async def _create_indexes(client: "AsyncQdrantClient", place: StorePlace) -> None:
    """Also called on every reopening: a kill may have interrupted it, and existing indexes cost nothing."""
    from qdrant_client import models

    kinds = dict.fromkeys(_KEYWORDS, models.PayloadSchemaType.KEYWORD)
    kinds |= dict.fromkeys(_INTEGERS, models.PayloadSchemaType.INTEGER)
    with warnings.catch_warnings():  # local mode warns that it has none
        warnings.filterwarnings("ignore", "Payload indexes have no effect")
        for field, kind in kinds.items():
            await client.create_payload_index(place.name, field, kind, wait=True)


@asynccontextmanager
async def _connected(place: StorePlace) -> AsyncIterator["AsyncQdrantClient"]:
    require("servers", _SETTING)
    with _translated(place):
        client = await _client(place)
    try:
        yield client
    finally:
        await client.close()


async def _client(place: StorePlace) -> "AsyncQdrantClient":
    from grpc.aio import AioRpcError  # type: ignore[import-untyped]
    from qdrant_client import AsyncQdrantClient

    if place.url == ":memory:" or (place.url and "://" not in place.url):
        return AsyncQdrantClient(":memory:") if place.url == ":memory:" else AsyncQdrantClient(path=place.url)
    parts = server_url(place, _SETTING)
    port = parts.port or _PORT
    options: dict[str, Any] = {
        "url": place.url,
        "port": port,
        "grpc_port": port + 1,
        "api_key": None if place.api_key is None else place.api_key.get_secret_value(),
        "timeout": SEARCH_SECONDS,
        "check_compatibility": False,  # it would send an unawaited request and print the result
    }

    def connected(*, grpc: bool) -> AsyncQdrantClient:
        with warnings.catch_warnings():  # the user who gave the URL knows that it is not TLS
            warnings.filterwarnings("ignore", "Api key is used with an insecure connection")
            return AsyncQdrantClient(**options, prefer_grpc=grpc)

    if await _listens(parts.hostname or "", port + 1):
        client = connected(grpc=True)
        with suppress(AioRpcError):  # not Qdrant, or access denied: REST tells which
            await client.collection_exists(place.name)
            return client
        await client.close()
    return connected(grpc=False)


async def _listens(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), _PROBE_SECONDS)
    except (OSError, OverflowError):
        return False
    writer.close()
    return True


@contextmanager
def _translated(place: StorePlace) -> Iterator[None]:
    """Translates the client's errors, over REST, over gRPC and in local mode, into this package's."""
    from grpc.aio import AioRpcError
    from qdrant_client.http.exceptions import ApiException

    try:
        yield
    except (AioRpcError, ApiException) as error:
        raise _fault(error, place) from error
    except (RuntimeError, ValueError, OSError) as error:
        server = shown_url(place.url or "")
        if "already accessed" in str(error):
            raise CorpusError(f"The dense index {server!r} is open elsewhere; close it there first.") from error
        raise CorpusError(f"The dense index {server!r} cannot be used: {error}") from error


def _fault(error: Exception, place: StorePlace) -> CorpusError | SettingsError:
    from grpc import StatusCode  # type: ignore[import-untyped]
    from qdrant_client.http.exceptions import ResponseHandlingException

    server = shown_url(place.url or "")
    code = error.code() if hasattr(error, "code") else None
    status = getattr(error, "status_code", None)
    if status in {401, 403} or code in {StatusCode.UNAUTHENTICATED, StatusCode.PERMISSION_DENIED}:
        return SettingsError(f"The Qdrant server at {server!r} rejected the key; set QDRANT_API_KEY to a valid one.")
    if isinstance(error, ResponseHandlingException) or code in {StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED}:
        return CorpusError(f"The Qdrant server at {server!r} does not respond; start it, or correct {_SETTING}.")
    reason = code.name if code is not None else f"status {status}"
    return CorpusError(f"The Qdrant server at {server!r} rejected a request ({reason}); check its log.")

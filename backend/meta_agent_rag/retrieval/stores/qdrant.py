"""Cosine similarity on a Qdrant server, through its async client.

A corpus is one collection, a point is a row without payload. Searches use the server's HNSW graph, once it has built
one, so the last few of a long result may differ from those of an exact scan. A `compressed` collection keeps an int8
copy of the vectors in memory and the vectors themselves on disk, from which the best are rescored.

If the port after the URL's speaks gRPC (6334 beside 6333, Qdrant's own convention), that is used:
vectors are then sent as binary floats, a third of the size of their JSON and cheaper to encode.
Otherwise, and if there is a proxy in front of the server, REST does the same.

Instead of a URL, a folder or `:memory:` opens the client's local mode, for trials and tests.
"""

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ...errors import CorpusError, SettingsError
from ...extras import require
from ..vectors import FloatVector, Rows
from .store import (
    BATCH_SECONDS,
    CREATED_BY,
    SEARCH_SECONDS,
    Changes,
    DenseBackend,
    Hit,
    StorePlace,
    best,
    server_url,
    shown_url,
)

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

_SETTING = "QDRANT_URL"
_VECTOR = "text"
_BATCH = 256
_OVERSAMPLING = 4.0
"""The factor by which more candidates than wanted are rescored if the collection is compressed."""
_PORT = 6333
_PROBE_SECONDS = 0.5


class QdrantStore:
    """A `DenseStore`; get one from `open_store`."""

    def __init__(self, client: "AsyncQdrantClient", place: StorePlace, dimension: int) -> None:
        self._client = client
        self._place = place
        self._dimension = dimension

    async def search(self, vector: FloatVector, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k nearest rows, by the server's graph."""
        from qdrant_client import models

        if vector.shape != (self._dimension,):
            raise ValueError(f"the vector has the shape {vector.shape}; ({self._dimension},) is needed")
        if among is not None and not len(among):
            return []
        allowed = None if among is None else models.Filter(must=[models.HasIdCondition(has_id=among.tolist())])
        again = models.SearchParams(
            quantization=models.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING)
        )

        async def fetch(limit: int) -> list[Hit]:
            with _translated(self._place):
                response = await self._client.query_points(
                    self._place.name,
                    vector.tolist(),
                    using=_VECTOR,
                    query_filter=allowed,
                    search_params=again if "://" in (self._place.url or "") else None,  # local mode never rescores
                    limit=limit,
                    with_payload=False,
                )
            return [Hit(min(1.0, max(-1.0, point.score)), int(point.id)) for point in response.points]

        return await best(fetch, k)


async def publish(place: StorePlace, dimension: int, changes: Changes) -> None:
    """Store and delete points in batches, each awaited until the server has applied it."""
    from qdrant_client import models

    async with _connected(place) as client:
        with _translated(place):
            if await _existing_dimension(client, place) is None:
                await _create(client, place, dimension)
        for added in changes.parts():
            for start in range(0, len(added.rows), _BATCH):
                part = slice(start, start + _BATCH)
                points = [
                    models.PointStruct(id=row, vector={_VECTOR: vector})
                    for row, vector in zip(added.rows[part].tolist(), added.vectors[part].tolist(), strict=True)
                ]
                with _translated(place):
                    await client.upsert(place.name, points, wait=True, timeout=BATCH_SECONDS)
        if len(changes.removed):
            with _translated(place):
                gone = models.PointIdsList(points=changes.removed.tolist())
                await client.delete(place.name, gone, wait=True)


@asynccontextmanager
async def open_store(place: StorePlace, dimension: int) -> AsyncIterator[QdrantStore]:
    """Connect to the place's collection, and close the connection afterwards.

    Raises `SettingsError` for a missing or malformed URL or a rejected key, `CorpusError` if the server
    is unreachable, or the collection is missing, has another dimension or was not created by this package.
    """
    async with _connected(place) as client:
        with _translated(place):
            existing = await _existing_dimension(client, place)
        if existing is None:
            raise CorpusError(f"The collection {place.name!r} is missing on the Qdrant server; ingest it again.")
        if existing != dimension:
            raise CorpusError(
                f"The collection {place.name!r} contains vectors of a different length; "
                "open it with the encoder it was built with, or rebuild it."
            )
        yield QdrantStore(client, place, dimension)


async def drop_store(place: StorePlace) -> None:
    """Remove the place's collection; see `DenseBackend`."""
    async with _connected(place) as client:
        with _translated(place):
            if await _existing_dimension(client, place) is not None:
                await client.delete_collection(place.name)


DENSE = DenseBackend(name="qdrant", open=open_store, publish=publish, drop=drop_store, served=True)


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

    if place.url and "://" not in place.url:
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
        raise CorpusError(f"The dense index {shown_url(place.url or '')!r} cannot be used: {error}") from error


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

"""Cosine similarity on a Qdrant server (from version 1.16), through its async client.

A corpus is one collection, a point is a row without payload. Searches use the server's HNSW graph, once it has built
one, so the last few of a long result may differ from those of an exact scan.

Instead of a URL, a folder or `:memory:` opens the client's local mode, for trials and tests.
"""

import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from ...errors import CorpusError, SettingsError
from ...extras import require
from ..vectors import FloatVector, Rows
from .store import (
    BATCH_SECONDS,
    CREATED_BY,
    SEARCH_SECONDS,
    Changes,
    DenseStore,
    Hit,
    StoreBackend,
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


class QdrantStore:
    """A `DenseStore`; get one from `open_store`."""

    def __init__(self, client: "AsyncQdrantClient", place: StorePlace) -> None:
        self._client = client
        self._place = place

    async def search(self, vector: FloatVector, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k nearest rows, by the server's graph."""
        from qdrant_client import models

        if vector.shape != (self._place.dimension,):
            raise ValueError(f"the vector has the shape {vector.shape}; ({self._place.dimension},) is needed")
        if among is not None and not len(among):
            return []
        allowed = None if among is None else models.Filter(must=[models.HasIdCondition(has_id=among.tolist())])

        async def fetch(limit: int) -> list[Hit]:
            with _translated(self._place):
                response = await self._client.query_points(
                    self._place.name,
                    vector.tolist(),
                    using=_VECTOR,
                    query_filter=allowed,
                    limit=limit,
                    with_payload=False,
                )
            return [Hit(min(1.0, max(-1.0, point.score)), int(point.id)) for point in response.points]

        return await best(fetch, k)


async def publish(place: StorePlace, changes: Changes) -> None:
    """Store and delete points in batches, each awaited until the server has applied it."""
    from qdrant_client import models

    async with _connected(place) as client:
        with _translated(place):
            if not await _exists(client, place):
                await _create(client, place)
            for added in changes.parts():
                for start in range(0, len(added.rows), _BATCH):
                    part = slice(start, start + _BATCH)
                    points = [
                        models.PointStruct(id=row, vector={_VECTOR: vector})
                        for row, vector in zip(added.rows[part].tolist(), added.vectors[part].tolist(), strict=True)
                    ]
                    await client.upsert(place.name, points, wait=True, timeout=BATCH_SECONDS)
            if len(changes.removed):
                await client.delete(place.name, models.PointIdsList(points=changes.removed.tolist()), wait=True)


@asynccontextmanager
async def open_store(place: StorePlace) -> AsyncIterator[QdrantStore]:
    """Connect to the place's collection, and close the connection afterwards.

    Raises `SettingsError` for a missing or malformed URL or a rejected key, `CorpusError` if the server
    is unreachable, or the collection is missing or was not created by this package.
    """
    async with _connected(place) as client:
        with _translated(place):
            exists = await _exists(client, place)
        if not exists:
            raise CorpusError(f"The collection {place.name!r} is missing on the Qdrant server; ingest it again.")
        yield QdrantStore(client, place)


async def drop_store(place: StorePlace) -> None:
    """Remove the place's collection; see `StoreBackend`."""
    async with _connected(place) as client:
        with _translated(place):
            if await _exists(client, place):
                await client.delete_collection(place.name)


QDRANT = StoreBackend[DenseStore](open=open_store, publish=publish, drop=drop_store)


async def _exists(client: "AsyncQdrantClient", place: StorePlace) -> bool:
    """Whether the collection exists. Raises `CorpusError` unless this package made it."""
    if not await client.collection_exists(place.name):
        return False
    config = (await client.get_collection(place.name)).config
    if (config.metadata or {}).get("created_by") != CREATED_BY:
        raise CorpusError(
            f"The collection {place.name!r} on the Qdrant server was not made by this package, or before version 1.16 "
            "of the server, and is left unchanged: choose another corpus name, or remove it there yourself."
        )
    return True


async def _create(client: "AsyncQdrantClient", place: StorePlace) -> None:
    from qdrant_client import models

    vectors = models.VectorParams(size=place.dimension, distance=models.Distance.COSINE)
    await client.create_collection(place.name, vectors_config={_VECTOR: vectors}, metadata={"created_by": CREATED_BY})


@asynccontextmanager
async def _connected(place: StorePlace) -> AsyncIterator["AsyncQdrantClient"]:
    require("servers", _SETTING)
    from qdrant_client import AsyncQdrantClient

    with _translated(place), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Api key is used with an insecure connection")  # the user gave the URL
        if place.url and "://" not in place.url:
            client = AsyncQdrantClient(":memory:") if place.url == ":memory:" else AsyncQdrantClient(path=place.url)
        else:
            client = AsyncQdrantClient(
                url=place.url,
                port=server_url(place, _SETTING).port or 6333,
                api_key=None if place.api_key is None else place.api_key.get_secret_value(),
                timeout=SEARCH_SECONDS,
                check_compatibility=False,  # it would send an unawaited request and print the result
            )
    try:
        yield client
    finally:
        await client.close()


@contextmanager
def _translated(place: StorePlace) -> Iterator[None]:
    """Translates the client's errors, over REST and in local mode, into this package's."""
    from qdrant_client.http.exceptions import ApiException, ResponseHandlingException

    server = f"Qdrant server at {shown_url(place.url or '')!r}"
    try:
        yield
    except ResponseHandlingException as error:
        raise CorpusError(f"The {server} does not respond; start it, or correct {_SETTING}.") from error
    except ApiException as error:
        status = getattr(error, "status_code", None)
        if status in {401, 403}:
            raise SettingsError(f"The {server} rejected the key; set QDRANT_API_KEY to a valid one.") from error
        raise CorpusError(f"The {server} rejected a request (status {status}); check its log.") from error
    except (RuntimeError, ValueError, OSError) as error:
        raise CorpusError(f"The dense index {shown_url(place.url or '')!r} cannot be used: {error}") from error

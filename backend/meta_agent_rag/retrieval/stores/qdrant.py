"""Cosine similarity on a Qdrant server (from version 1.16), through its async client.

A corpus is one collection, a point is a row without payload. Searches use the server's HNSW graph, once it has built
one, so the last few of a long result may differ from those of an exact scan.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import CorpusError, SettingsError
from ...extras import require
from ..vectors import FloatVector, Rows
from .store import BATCH_SECONDS, SEARCH_SECONDS, Changes, Hit, Store, StorePlace, best, server_url, shown_url

_SETTING = "QDRANT_URL"
_VECTOR = "text"
_BATCH = 256


class QdrantStore(Store[FloatVector]):
    """Vectors in a collection of a Qdrant server."""

    def __init__(self, place: StorePlace) -> None:
        super().__init__(place)
        require("servers", _SETTING)
        from qdrant_client import AsyncQdrantClient

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Api key is used with an insecure connection")  # the user gave the URL
            self._client = AsyncQdrantClient(
                url=place.url,
                port=server_url(place, _SETTING).port or 6333,
                api_key=None if place.api_key is None else place.api_key.get_secret_value(),
                timeout=SEARCH_SECONDS,
                check_compatibility=False,  # it would send an unawaited request and print the result
            )

    async def open(self) -> None:
        """Raise `CorpusError` if the collection is missing."""
        with self._translated():
            exists = await self._client.collection_exists(self._place.name)
        if not exists:
            raise CorpusError(f"The collection {self._place.name!r} is missing on its server; ingest it again.")

    async def search(self, query: FloatVector, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k nearest rows, by the server's graph."""
        from qdrant_client import models

        if query.shape != (self._place.dimension,):
            raise ValueError(f"the vector has the shape {query.shape}; ({self._place.dimension},) is needed")
        if among is not None and not len(among):
            return []
        allowed = None if among is None else models.Filter(must=[models.HasIdCondition(has_id=among.tolist())])

        async def fetch(limit: int) -> list[Hit]:
            with self._translated():
                response = await self._client.query_points(
                    self._place.name,
                    query.tolist(),
                    using=_VECTOR,
                    query_filter=allowed,
                    limit=limit,
                    with_payload=False,
                )
            return [Hit(min(1.0, max(-1.0, point.score)), int(point.id)) for point in response.points]

        return await best(fetch, k)

    async def publish(self, changes: Changes) -> None:
        """Store and delete points in batches, each awaited until the server has applied it."""
        from qdrant_client import models

        client, name = self._client, self._place.name
        with self._translated():
            if not await client.collection_exists(name):
                vectors = models.VectorParams(size=self._place.dimension, distance=models.Distance.COSINE)
                await client.create_collection(name, vectors_config={_VECTOR: vectors})
            for added in changes.parts():
                for start in range(0, len(added.rows), _BATCH):
                    part = slice(start, start + _BATCH)
                    points = [
                        models.PointStruct(id=row, vector={_VECTOR: vector})
                        for row, vector in zip(added.rows[part].tolist(), added.vectors[part].tolist(), strict=True)
                    ]
                    await client.upsert(name, points, wait=True, timeout=BATCH_SECONDS)
            if len(changes.removed):
                await client.delete(name, models.PointIdsList(points=changes.removed.tolist()), wait=True)

    async def drop(self) -> None:
        """Remove the collection, if it exists."""
        with self._translated():
            if await self._client.collection_exists(self._place.name):
                await self._client.delete_collection(self._place.name)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translates the client's errors, into this package's."""
        from qdrant_client.http.exceptions import ApiException, ResponseHandlingException

        server = f"Qdrant server at {shown_url(self._place.url or '')!r}"
        try:
            yield
        except ResponseHandlingException as error:
            raise CorpusError(f"The {server} does not respond; start it, or correct {_SETTING}.") from error
        except ApiException as error:
            status = getattr(error, "status_code", None)
            if status in {401, 403}:
                raise SettingsError(f"The {server} rejected the key; set QDRANT_API_KEY to a valid one.") from error
            raise CorpusError(f"The {server} rejected a request (status {status}); check its log.") from error

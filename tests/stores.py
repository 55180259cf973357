"""Any store as the contract suite uses it, and foreign data found in its place."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from pydantic import SecretStr

from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.stores.elastic import ELASTICSEARCH
from meta_agent_rag.retrieval.stores.matrix import MATRIX
from meta_agent_rag.retrieval.stores.qdrant import QDRANT
from meta_agent_rag.retrieval.stores.store import Added, Changes, Hit, StoreBackend, StorePlace
from meta_agent_rag.retrieval.stores.words import TANTIVY

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

DENSE: dict[str, StoreBackend[Any]] = {"matrix": MATRIX, "qdrant": QDRANT}
LEXICAL: dict[str, StoreBackend[Any]] = {"tantivy": TANTIVY, "elasticsearch": ELASTICSEARCH}
NAMES = (*DENSE, *LEXICAL)
ENCODER = HashEncoder(128)
EMBEDDED = ("matrix", "tantivy")


class Search(Protocol):
    async def __call__(self, text: str, k: int, *, among: Sequence[int] | None = None) -> list[Hit]: ...


@dataclass(kw_only=True)
class Stores:
    """Stores of one kind; a test may have several, by label. `drop_all` removes them all."""

    name: str
    folder: Path
    url: str | None = None
    api_key: SecretStr | None = None
    prefix: str = "marag-test"
    states: dict[str, int] = field(default_factory=dict)

    @property
    def backend(self) -> StoreBackend[Any]:
        return {**DENSE, **LEXICAL}[self.name]

    def place(self, label: str = "one") -> StorePlace:
        """The place of the current state."""
        state = self.states.get(label, 0)
        return StorePlace(
            folder=self.folder / f"{label}-{state}",
            name=f"{self.prefix}-{label}",
            dimension=ENCODER.dimension,
            before=self.folder / f"{label}-{state - 1}" if state > 1 else None,
            url=self.url,
            api_key=self.api_key,
        )

    async def publish(
        self, passages: Mapping[int, Passage], *, removed: Sequence[int] = (), label: str = "one"
    ) -> None:
        """Publish the next state; vectors are computed from the texts if the store needs them."""
        self.states[label] = self.states.get(label, 0) + 1
        await self.apply(passages, removed, label)

    async def apply(self, passages: Mapping[int, Passage], removed: Sequence[int], label: str) -> None:
        rows, found = np.array(list(passages), dtype=np.int64), list(passages.values())
        vectors = ENCODER.encode_passages([passage.searchable() for passage in found])
        slices = [slice(at, at + 100) for at in range(0, len(found), 100)]
        parts = [Added(rows[part], found[part], vectors[part]) for part in slices]
        changes = Changes(removed=np.array(removed, dtype=np.int64), added=rows, parts=lambda: iter(parts))
        await self.backend.publish(self.place(label), changes)

    @asynccontextmanager
    async def opened(self, label: str = "one") -> AsyncIterator[Search]:
        """The search over the current state."""
        async with self.backend.open(self.place(label)) as store:

            async def search(text: str, k: int, *, among: Sequence[int] | None = None) -> list[Hit]:
                query: Any = ENCODER.encode_queries([text])[0] if self.name in DENSE else text
                rows = None if among is None else np.array(sorted(among), dtype=np.int64)
                found: list[Hit] = await store.search(query, k, among=rows)
                return found

            yield search

    async def drop(self, label: str = "one") -> None:
        await self.backend.drop(self.place(label))

    async def drop_all(self) -> None:
        for label in self.states:
            await self.drop(label)

    def stranger(self, label: str) -> "Stranger":
        return STRANGERS[self.name](self.place(label))


class Stranger(Protocol):
    """Foreign data where a store should be on a server."""

    async def arrive(self) -> None: ...
    async def is_untouched(self) -> bool: ...
    async def leave(self) -> None: ...


class _StrangeIndex:
    def __init__(self, place: StorePlace) -> None:
        from elasticsearch import AsyncElasticsearch

        assert place.url is not None
        self.name = place.name
        self.key = place.api_key.get_secret_value() if place.api_key else None
        self.client = AsyncElasticsearch(place.url, api_key=self.key)

    async def arrive(self) -> None:
        await self.client.index(index=self.name, id="1", document={"note": "Dear diary"}, refresh=True)

    async def is_untouched(self) -> bool:
        count = (await self.client.count(index=self.name))["count"]
        mapping = (await self.client.indices.get(index=self.name))[self.name]["mappings"]
        return bool(count == 1 and list(mapping["properties"]) == ["note"])

    async def leave(self) -> None:
        await self.client.indices.delete(index=self.name)
        await self.client.close()


class _StrangeCollection:
    """Like ours in everything but the marker."""

    def __init__(self, place: StorePlace) -> None:
        self.place = place

    @asynccontextmanager
    async def _client(self) -> "AsyncIterator[AsyncQdrantClient]":
        from qdrant_client import AsyncQdrantClient

        url = self.place.url or ""
        key = self.place.api_key.get_secret_value() if self.place.api_key else None
        client = AsyncQdrantClient(url, api_key=key) if "://" in url else AsyncQdrantClient(path=url)
        try:
            yield client
        finally:
            await client.close()

    async def arrive(self) -> None:
        from qdrant_client.models import Distance, PointStruct, VectorParams

        vectors = {"text": VectorParams(size=ENCODER.dimension, distance=Distance.COSINE)}
        async with self._client() as client:
            await client.create_collection(self.place.name, vectors_config=vectors)
            note = PointStruct(id=1, vector={"text": [1.0] * ENCODER.dimension}, payload={"note": "Dear diary"})
            await client.upsert(self.place.name, [note], wait=True)

    async def is_untouched(self) -> bool:
        async with self._client() as client:
            return (await client.get_collection(self.place.name)).points_count == 1

    async def leave(self) -> None:
        async with self._client() as client:
            await client.delete_collection(self.place.name)


STRANGERS: dict[str, Callable[[StorePlace], Stranger]] = {"elasticsearch": _StrangeIndex, "qdrant": _StrangeCollection}

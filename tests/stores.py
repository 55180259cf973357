"""Any store as the contract suite uses it, and foreign data found in its place."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pydantic import SecretStr

from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.retrieval.stores import DenseStore, LexicalStore, StorePlace, discover_stores

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

KNOWN = discover_stores()
NAMES = (*KNOWN.dense, *KNOWN.lexical)
ENCODER = HashEncoder(128)
EMBEDDED = (
    *(store.name for store in KNOWN.dense.values() if not store.served),
    *(store.name for store in KNOWN.lexical.values() if not store.served),
)


class Handle(Protocol):
    """A store of either kind; vectors are computed from the texts if it needs them."""

    async def update(self, passages: Sequence[Passage], *, removed: Sequence[str] = ()) -> None: ...
    async def search(self, text: str, k: int, *, among: Collection[str] | None = None) -> list[Found]: ...
    def scan(self) -> AsyncIterator[Passage]: ...


class _Dense:
    def __init__(self, store: DenseStore) -> None:
        self.store = store
        self.scan = store.scan

    async def update(self, passages: Sequence[Passage], *, removed: Sequence[str] = ()) -> None:
        vectors = ENCODER.encode_passages([passage.searchable() for passage in passages])
        await self.store.update(passages, vectors, removed=removed)

    async def search(self, text: str, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        return await self.store.search(ENCODER.encode_queries([text])[0], k, among=among)


@dataclass(frozen=True, kw_only=True)
class Stores:
    """Stores of one kind; a test may have several, by label. `drop_all` removes them all."""

    name: str
    folder: Path
    url: str | None = None
    api_key: SecretStr | None = None
    prefix: str = "marag-test"
    used: list[str] = field(default_factory=list)

    @property
    def dense(self) -> bool:
        return self.name in KNOWN.dense

    @property
    def locks(self) -> bool:
        """Whether only one process at a time can open a store, as with all folder-based stores."""
        return self.url is None or "://" not in self.url

    def place(self, label: str = "one") -> StorePlace:
        return StorePlace(folder=self.folder / label, name=f"{self.prefix}-{label}", url=self.url, api_key=self.api_key)

    @asynccontextmanager
    async def opened(self, label: str = "one") -> AsyncIterator[Handle]:
        if self.dense:
            async with KNOWN.dense[self.name].open(self.place(label), ENCODER.dimension) as store:
                self.used.append(label)
                yield _Dense(store)
        else:
            async with KNOWN.lexical[self.name].open(self.place(label)) as lexical:
                self.used.append(label)
                handle: LexicalStore = lexical
                yield handle

    async def drop(self, label: str = "one") -> None:
        backend = KNOWN.dense[self.name] if self.dense else KNOWN.lexical[self.name]
        await backend.drop(self.place(label))

    async def drop_all(self) -> None:
        for label in dict.fromkeys(self.used):
            await self.drop(label)

    def stranger(self, label: str) -> "Stranger":
        return STRANGERS[self.name](self.place(label))


class Stranger(Protocol):
    """Foreign data where a store should be."""

    async def arrive(self) -> None: ...
    async def is_untouched(self) -> bool: ...
    async def leave(self) -> None: ...


class _StrangeFolder:
    def __init__(self, place: StorePlace) -> None:
        self.file = place.folder / "notes" / "diary.txt"

    async def arrive(self) -> None:
        self.file.parent.mkdir(parents=True)
        self.file.write_text("Dear diary")

    async def is_untouched(self) -> bool:
        around = list(self.file.parents[1].rglob("*"))
        return self.file.read_text() == "Dear diary" and sorted(around) == [self.file.parent, self.file]

    async def leave(self) -> None:
        self.file.unlink()


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
            points, _ = await client.scroll(self.place.name, limit=10)
            return [point.payload for point in points] == [{"note": "Dear diary"}]

    async def leave(self) -> None:
        async with self._client() as client:
            await client.delete_collection(self.place.name)


STRANGERS: dict[str, Callable[[StorePlace], Stranger]] = {
    **dict.fromkeys(EMBEDDED, _StrangeFolder),
    "elasticsearch": _StrangeIndex,
    "qdrant": _StrangeCollection,
}

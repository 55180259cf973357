"""Any store as the contract suite uses it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from pydantic import SecretStr

from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.stores.elastic import ElasticsearchStore
from meta_agent_rag.retrieval.stores.embedded import MatrixStore, WordStore
from meta_agent_rag.retrieval.stores.qdrant import QdrantStore
from meta_agent_rag.retrieval.stores.store import ROWS_FILE, Added, Changes, Hit, Store, StorePlace

DENSE: dict[str, type[Store[Any]]] = {"matrix": MatrixStore, "qdrant": QdrantStore}
LEXICAL: dict[str, type[Store[Any]]] = {"tantivy": WordStore, "elasticsearch": ElasticsearchStore}
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

    @asynccontextmanager
    async def store(self, label: str = "one") -> AsyncIterator[Store[Any]]:
        store = {**DENSE, **LEXICAL}[self.name](self.place(label))
        try:
            yield store
        finally:
            await store.close()

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
        place = self.place(label)
        before = np.load(place.before / ROWS_FILE) if place.before else np.zeros(0, dtype=np.int64)
        place.folder.mkdir(parents=True)
        np.save(place.folder / ROWS_FILE, np.union1d(np.setdiff1d(before, removed), list(passages)).astype(np.int64))
        await self.apply(passages, removed, label)

    async def apply(self, passages: Mapping[int, Passage], removed: Sequence[int], label: str) -> None:
        rows, found = np.array(list(passages), dtype=np.int64), list(passages.values())
        vectors = ENCODER.encode_passages([passage.searchable() for passage in found])
        slices = [slice(at, at + 100) for at in range(0, len(found), 100)]
        parts = [Added(rows[part], found[part], vectors[part]) for part in slices]
        changes = Changes(removed=np.array(removed, dtype=np.int64), added=rows, parts=lambda: iter(parts))
        async with self.store(label) as store:
            await store.publish(changes)

    @asynccontextmanager
    async def opened(self, label: str = "one") -> AsyncIterator[Search]:
        """The search over the current state."""
        async with self.store(label) as store:
            await store.open()

            async def search(text: str, k: int, *, among: Sequence[int] | None = None) -> list[Hit]:
                query: Any = ENCODER.encode_queries([text])[0] if self.name in DENSE else text
                rows = None if among is None else np.array(sorted(among), dtype=np.int64)
                found: list[Hit] = await store.search(query, k, among=rows)
                return found

            yield search

    async def drop(self, label: str = "one") -> None:
        async with self.store(label) as store:
            await store.drop()

    async def drop_all(self) -> None:
        for label in self.states:
            await self.drop(label)

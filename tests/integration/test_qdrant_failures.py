"""How the Qdrant store chooses between gRPC and REST and handles a refusing or missing server."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio  # type: ignore[import-untyped]
import numpy as np
import pytest
from pydantic import SecretStr
from qdrant_client.grpc import CollectionExists, CollectionExistsResponse
from qdrant_client.grpc.collections_service_pb2_grpc import CollectionsServicer, add_CollectionsServicer_to_server

from meta_agent_rag.errors import CorpusError, SettingsError
from meta_agent_rag.retrieval.stores import discover_stores
from meta_agent_rag.retrieval.stores.store import Changes, StorePlace
from tests.integration.test_elasticsearch_failures import Scripted, serving
from tests.servers import free_port

STORE = discover_stores().dense["qdrant"]
SECRET = "hush-0123456789"
_PAIRS = 20


class Collections(CollectionsServicer):
    """Has no collection, and says so to clients with the key."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def CollectionExists(self, request: Any, context: Any) -> Any:  # noqa: N802  # the name in the gRPC protocol
        if dict(context.invocation_metadata()).get("api-key") != SECRET:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Invalid API key")
        self.asked.append(request.collection_name)
        return CollectionExistsResponse(result=CollectionExists(exists=False))


@asynccontextmanager
async def grpc_server(port: int = 0) -> AsyncIterator[tuple[Collections, int]]:
    server, collections = grpc.aio.server(), Collections()
    add_CollectionsServicer_to_server(collections, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield collections, port
    finally:
        await server.stop(None)


@asynccontextmanager
async def rest_beside_grpc(reply: Any) -> AsyncIterator[tuple[Scripted, Collections]]:
    """A REST server and a gRPC server on the next port; retries with another pair if that port is in use."""
    for attempt in range(_PAIRS):
        async with AsyncExitStack() as opened:
            rest = opened.enter_context(serving(Scripted(lambda sent: [], first=reply, headers={})))
            try:
                above = int(rest.url.rpartition(":")[2]) + 1
                collections, _ = await opened.enter_async_context(grpc_server(above))
            except RuntimeError:
                if attempt == _PAIRS - 1:
                    raise
                continue
            yield rest, collections
            return


def place(url: str, key: str = SECRET) -> StorePlace:
    return StorePlace(folder=Path("unused"), name="marag-choice", url=url, api_key=SecretStr(key))


async def test_grpc_is_used_if_available() -> None:
    async with grpc_server() as (collections, port):
        await STORE.drop(place(f"http://127.0.0.1:{port - 1}"))  # a port without a REST server
    assert set(collections.asked) == {"marag-choice"}


async def test_rest_is_used_if_grpc_rejects_us() -> None:
    reply = (200, {"result": {"exists": False}, "status": "ok", "time": 0.0})
    async with rest_beside_grpc(reply) as (server, collections):
        await STORE.drop(place(server.url, key="another"))
    assert collections.asked == []


class Creating(Scripted):
    """Has no collection, allows creating one, and records requests."""

    def __init__(self) -> None:
        super().__init__(lambda sent: [], headers={})
        self.made: dict[str, Any] = {}
        self.searched: dict[str, Any] = {}

    def reply(self, path: str, body: str) -> tuple[int, object]:
        result: object = {"operation_id": 0, "status": "completed"}
        name = path.partition("?")[0]
        if name.endswith("/exists"):
            result = {"exists": bool(self.made)}
        elif name.endswith("/query"):
            self.searched, result = json.loads(body), {"points": []}
        elif name.endswith("/marag-choice") and body:
            self.made, result = json.loads(body), True
        elif name.endswith("/marag-choice"):
            optimizer = "deleted_threshold vacuum_min_vector_number default_segment_number flush_interval_sec"
            result = {
                **{"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {}},
                "config": {
                    "params": {"vectors": self.made["vectors"]},
                    "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
                    "optimizer_config": dict.fromkeys(optimizer.split(), 1),
                    "metadata": self.made["metadata"],
                },
            }
        return 200, {"result": result, "status": "ok", "time": 0.0}


@pytest.mark.parametrize("compressed", [False, True])
async def test_a_compressed_collection_keeps_codes_in_memory_and_vectors_on_disk(compressed: bool) -> None:
    with serving(Creating()) as server:
        wanted, nothing = replace(place(server.url), compressed=compressed), np.zeros(0, dtype=np.int64)
        await STORE.publish(wanted, 3, Changes(removed=nothing, added=nothing, parts=lambda: iter(())))
        async with STORE.open(wanted, 3) as store:
            await store.search(np.ones(3, dtype=np.float32), 5)
        assert isinstance(server, Creating)
        vectors = server.made["vectors"]["text"]
        assert vectors["size"] == 3
        codes = {"scalar": {"type": "int8", "always_ram": True}}
        assert vectors.get("on_disk") is (True if compressed else None)
        assert vectors.get("quantization_config") == (codes if compressed else None)
        assert server.searched["params"]["quantization"] == {"rescore": True, "oversampling": 4.0}


async def test_an_unreachable_server_is_reported() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(CorpusError, match=f"{url}.*does not respond") as caught:
        await STORE.drop(place(url))
    assert SECRET not in str(caught.value)


async def test_a_rejected_key_is_reported_with_the_server_and_the_setting() -> None:
    reply = (401, {"status": {"error": "Invalid API key"}})
    with serving(Scripted(lambda sent: [], first=reply, headers={})) as server:
        with pytest.raises(SettingsError, match=f"{server.url}.*QDRANT_API_KEY") as caught:
            await STORE.drop(place(server.url))
        assert SECRET not in str(caught.value)

"""How the Qdrant store creates a collection, and handles a refusing or missing server."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from meta_agent_rag.errors import CorpusError, SettingsError
from meta_agent_rag.retrieval.stores import discover_stores
from meta_agent_rag.retrieval.stores.store import Changes, StorePlace
from tests.integration.test_elasticsearch_failures import Scripted, serving
from tests.servers import free_port

STORE = discover_stores().dense["qdrant"]
SECRET = "hush-0123456789"


def place(url: str, key: str = SECRET) -> StorePlace:
    return StorePlace(folder=Path("unused"), name="marag-choice", dimension=3, url=url, api_key=SecretStr(key))


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
        await STORE.publish(wanted, Changes(removed=nothing, added=nothing, parts=lambda: iter(())))
        async with STORE.open(wanted) as store:
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

"""How the Qdrant store handles a refusing or missing server."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from meta_agent_rag.errors import CorpusError, SettingsError
from meta_agent_rag.retrieval.stores.qdrant import QDRANT
from meta_agent_rag.retrieval.stores.store import StorePlace
from tests.integration.test_elasticsearch_failures import Scripted, serving
from tests.servers import free_port

SECRET = "hush-0123456789"


def place(url: str, key: str = SECRET) -> StorePlace:
    return StorePlace(folder=Path("unused"), name="marag-choice", dimension=3, url=url, api_key=SecretStr(key))


async def test_an_unreachable_server_is_reported() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(CorpusError, match=f"{url}.*does not respond") as caught:
        await QDRANT.drop(place(url))
    assert SECRET not in str(caught.value)


async def test_a_rejected_key_is_reported_with_the_server_and_the_setting() -> None:
    reply = (401, {"status": {"error": "Invalid API key"}})
    with serving(Scripted(lambda sent: [], first=reply, headers={})) as server:
        with pytest.raises(SettingsError, match=f"{server.url}.*QDRANT_API_KEY") as caught:
            await QDRANT.drop(place(server.url))
        assert SECRET not in str(caught.value)

r"""The store contract suite against real servers, at QDRANT_URL and ELASTICSEARCH_URL.

    docker compose up -d && QDRANT_URL=http://127.0.0.1:6333 ELASTICSEARCH_URL=http://127.0.0.1:9200 \
        uv run pytest tests/integration/test_server_stores.py

Indexes and collections are named `marag-test-...` and removed at the end.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from tests.contracts import test_stores as contract
from tests.stores import Stores

# Read at import, since tests run without the developer's settings.
SERVERS = {
    "qdrant": (os.environ.get("QDRANT_URL"), os.environ.get("QDRANT_API_KEY")),
    "elasticsearch": (os.environ.get("ELASTICSEARCH_URL"), os.environ.get("ELASTICSEARCH_API_KEY")),
}
CHECKS = {name: check for name, check in vars(contract).items() if name.startswith("test_any_store_")}

pytestmark = pytest.mark.skipif(
    not any(url for url, _ in SERVERS.values()), reason="neither QDRANT_URL nor ELASTICSEARCH_URL is set"
)
globals().update(CHECKS)


@pytest.fixture(params=SERVERS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    """Each server in turn, with unique names."""
    if request.param not in SERVERS:
        pytest.skip("this store needs no server")
    url, key = SERVERS[request.param]
    if not url:
        pytest.skip(f"{request.param.upper()}_URL is not set")
    prefix = f"marag-test-{uuid4().hex[:12]}"
    secret = None if key is None else SecretStr(key)
    servers = Stores(name=request.param, folder=tmp_path, url=url, api_key=secret, prefix=prefix)
    yield servers
    await servers.drop_all()


def test_contract_checks_are_found() -> None:
    assert len(CHECKS) > 10

r"""The stores that the contract suites run over; with QDRANT_URL or ELASTICSEARCH_URL set, on that server.

    docker compose up -d && QDRANT_URL=http://127.0.0.1:6333 ELASTICSEARCH_URL=http://127.0.0.1:9200 \
        uv run pytest tests/contracts/test_stores.py

Indexes and collections are named `marag-test-...` and removed at the end.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from tests.stores import NAMES, Stores

# read at import, since tests run without the developer's settings
OWN = {name: os.environ.get(f"{name.upper()}_URL") for name in ("qdrant", "elasticsearch")}
KEYS = {name: os.environ.get(f"{name.upper()}_API_KEY") for name, url in OWN.items() if url}


@pytest.fixture(params=NAMES)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    """Each kind of store in turn, each in its own place."""
    name = request.param
    url = OWN[name] or request.getfixturevalue(f"{name}_url") if name in OWN else None
    secret = SecretStr(key) if (key := KEYS.get(name)) else None
    stores = Stores(name=name, folder=tmp_path, url=url, api_key=secret, prefix=f"marag-test-{uuid4().hex[:12]}")
    yield stores
    await stores.drop_all()

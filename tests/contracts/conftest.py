"""The stores that the contract suites run over."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.stores import NAMES, Stores


@pytest.fixture(params=NAMES)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    """Each kind of store in turn, each in its own place."""
    name, url = request.param, None
    if name in ("qdrant", "elasticsearch"):
        url = request.getfixturevalue(f"{name}_url")
    stores = Stores(name=name, folder=tmp_path, url=url, prefix=f"marag-test-{uuid4().hex[:12]}")
    yield stores
    await stores.drop_all()

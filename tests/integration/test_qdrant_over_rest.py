"""The store contract suite with Qdrant's client over REST, against a server over the client's local mode."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts import test_stores as contract
from tests.stores import Stores

CHECKS = {name: check for name, check in vars(contract).items() if name.startswith("test_any_store_")}

pytestmark = pytest.mark.slow
globals().update(CHECKS)


@pytest.fixture(params=["qdrant"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path, qdrant_url: str) -> AsyncIterator[Stores]:
    if request.param != "qdrant":
        pytest.skip("this check is for other stores")
    stores = Stores(name=request.param, folder=tmp_path, url=qdrant_url, prefix=f"marag-rest-{tmp_path.name}")
    yield stores
    await stores.drop_all()


def test_contract_checks_are_found() -> None:
    assert len(CHECKS) > 10

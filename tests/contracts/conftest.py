"""The stores that the contract suites run over."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from tests.stores import NAMES, Stores


@pytest.fixture(params=NAMES)
async def stores(request: pytest.FixtureRequest, tmp_path: Path, memory_folder: Path) -> AsyncIterator[Stores]:
    """Each kind of store in turn, each in its own place."""
    name, url = request.param, None
    if name == "qdrant":
        url = str(memory_folder)
    elif name == "elasticsearch":
        url = request.getfixturevalue("elasticsearch_url")
    stores = Stores(name=name, folder=tmp_path, url=url, prefix=f"marag-test-{uuid4().hex[:12]}")
    yield stores
    await stores.drop_all()


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """A folder in memory if the platform has one, since local mode syncs to disk after every point."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)

"""Assign whole test files to workers, slowest first, so that all workers finish at about the same time."""

import pytest
from xdist.scheduler import LoadScopeScheduling

ON_TORCH = ("unit/test_torch_encoder.py",)
"""Only one worker imports torch, which takes over ten seconds."""
LONGEST = (
    *ON_TORCH,
    "house/test_documents.py",
    "integration/test_grounded_corpus.py",
    "integration/test_recording.py",
    "integration/test_wheel.py",
)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """Gives a worker one file at a time."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "torch" if file.endswith(ON_TORCH) else "browser" if "/browser/" in file else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Schedule files in collection order, not by their number of tests."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    places = {name: place for place, name in enumerate(LONGEST, start=1)}

    def place(item: pytest.Item) -> int:
        folder, name = item.path.parts[-2:]
        return 0 if folder == "browser" else places.get(f"{folder}/{name}", len(places) + 1)

    items.sort(key=place)

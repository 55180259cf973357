"""Keep test files in memory if there is room, since embedded stores wait for the disk at every commit."""

import os
import shutil
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")  # pytest creates its own folder in it
_ROOM = 8 << 30
_ROOT = "PYTEST_DEBUG_TEMPROOT"


def pytest_configure(config: pytest.Config) -> None:
    """Choose the folder unless the command line or the environment sets it."""
    chosen = config.getoption("basetemp") is not None or _ROOT in os.environ
    if not chosen and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _ROOM:
        os.environ[_ROOT] = str(_MEMORY)

"""Where tests keep their files: in memory if there is room, for embedded stores wait for the disk at every commit."""

import os
import shutil
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")  # pytest makes a folder of its own in it
_ROOM = 8 << 30
_ROOT = "PYTEST_DEBUG_TEMPROOT"


def pytest_configure(config: pytest.Config) -> None:
    """Choose the folder, unless the command line or the environment names one."""
    chosen = config.getoption("basetemp") is not None or _ROOT in os.environ
    if not chosen and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _ROOM:
        os.environ[_ROOT] = str(_MEMORY)

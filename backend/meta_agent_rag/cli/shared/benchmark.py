"""Locates the benchmark's package."""

import sys
from importlib.util import find_spec
from pathlib import Path

_INSTALLED = "meta_agent_rag.benchmarks"
_IN_A_CLONE = "benchmarks"


def benchmark_package() -> tuple[str, Path | None]:
    """The package of the benchmark: inside ours if installed; in a clone, next to it in the returned folder.

    The folder is added to the import path.
    """
    if find_spec(_INSTALLED) is not None:
        return _INSTALLED, None
    root = Path(__file__).parents[4]
    sys.path.insert(0, str(root))
    return _IN_A_CLONE, root

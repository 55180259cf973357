"""The examples in docstrings give the results that they show."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITH_EXAMPLES = [
    ".".join(path.relative_to(home).with_suffix("").parts).removesuffix(".__init__")
    for home, package in ((ROOT / "backend", "meta_agent_rag"), (ROOT, "benchmarks"))
    for path in sorted((home / package).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples(module: str) -> None:
    assert not doctest.testmod(importlib.import_module(module)).failed

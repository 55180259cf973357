"""A copy of the source tree that a test can change, and commands that run in it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("backend", "benchmarks", "tests", "docs", "pyproject.toml", "uv.lock", "README.md", ".env.example")
"""What the contract suites and document generation need."""
_RUN_SUITES = """
import sys
import pytest

class Selection:
    def pytest_collection_modifyitems(self, config, items):
        of_another = [one for one in items if "[" in one.name and not any(name in one.name for name in NAMES)]
        config.hook.pytest_deselected(items=of_another)
        items[:] = [one for one in items if one not in of_another]

suites, NAMES = sys.argv[1].split(), sys.argv[2].split()
sys.exit(pytest.main(["-n", "0", "-q", "-rp", "-p", "no:cacheprovider", *suites], plugins=[Selection()]))
"""
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.gz", "*.zip", "*.png", "node_modules")


def copied_tree(folder: Path, *parts: str) -> Path:
    """Copy the repository's sources, without records and images; returns the copy's root."""
    for part in parts:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=_LEFT_OUT)
        else:
            shutil.copyfile(ROOT / part, target)
    return folder


def in_tree(tree: Path, *words: str, seconds: float = 300.0) -> "subprocess.CompletedProcess[str]":
    """Run Python in the copy, whose packages take precedence over the installed ones."""
    path = os.pathsep.join((str(tree / "backend"), str(tree)))
    env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=tree, env=env, capture_output=True, text=True, timeout=seconds, check=False
    )


def run_suites(tree: Path, suites: Iterable[str], names: Iterable[str]) -> "subprocess.CompletedProcess[str]":
    """Run test files of the copy; of tests parametrised over members of a kind, only those for these names."""
    return in_tree(tree, "-c", _RUN_SUITES, " ".join(suites), " ".join(names), seconds=600.0)


def failures(done: "subprocess.CompletedProcess[str]") -> str:
    """The failures reported by a test run."""
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("PASSED")) + done.stderr

"""A copy of the source tree that a test may change, and commands that run in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.gz", "*.zip", "*.png", "node_modules")


def copied_tree(folder: Path, *parts: str) -> Path:
    """Copy these files and folders of the repository, without records and pictures; returns the copy's root."""
    for part in parts:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=_LEFT_OUT)
        else:
            shutil.copyfile(ROOT / part, target)
    return folder


def in_tree(tree: Path, *words: str, seconds: float = 300.0) -> "subprocess.CompletedProcess[str]":
    """Run Python on the copy: its packages come before the installed ones."""
    path = os.pathsep.join((str(tree / "backend"), str(tree)))
    env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=tree, env=env, capture_output=True, text=True, timeout=seconds, check=False
    )

"""Importing pysbd prints no warnings, although compiling its source raises some."""

import os
import subprocess
import sys
from pathlib import Path

SAY = "from meta_agent_rag.text.sentences import sentences; print(sentences('Mr. A. came. He saw.'))"


def test_a_first_import_prints_no_warning(tmp_path: Path) -> None:
    compiled_nowhere = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SAY], capture_output=True, text=True, env=compiled_nowhere, check=True
    )
    assert (done.stdout, done.stderr) == ("['Mr. A. came. ', 'He saw.']\n", "")

"""Every test runs alone: no setting of the developer's, no `.env`, no data folder but its own."""

import os
from pathlib import Path

import pytest

from meta_agent_rag.settings import Settings


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unset every setting, work in an empty folder, keep data in it."""
    for name in list(os.environ):
        if name.lower() in Settings.model_fields:
            monkeypatch.delenv(name)
    monkeypatch.setenv("MARAG_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
